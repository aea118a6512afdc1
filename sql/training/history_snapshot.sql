-- history_snapshot: what a view's gold answered for every key at a time.
-- grain:      one row per keys that gold had a row of then
-- input:      ${view}_answered, the history's rows of changed keys, up to that time, with __answered,
--             since when each is the answer, as a temporary view
WITH newest AS (
  SELECT
    ${keys},
    max_by(struct(kind, as_of, version, ${shown_names}), struct(__answered, version)) AS __newest
  FROM ${view}_answered
  GROUP BY
    ${keys}
)
SELECT
  ${keys},
  ${newest_values},
  __newest.as_of AS changed_at,
  __newest.version AS version
FROM newest
WHERE __newest.kind = 'row'
