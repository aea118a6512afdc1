-- key_history: what a view's gold answered for some keys in a span of time, change by change.
-- grain:      one row per keys and answer that holds in [start, end)
-- input:      ${view}_answered, the history's rows of these keys before the end, with __answered, since
--             when each is the answer, in microseconds since 1970, as a temporary view
-- parameters: :start TIMESTAMP
-- An answer holds in [valid_from, valid_to); valid_to is null where it holds to the end of the span.
-- A row that is gone has the empty values. Of two at one time the later version is the answer.
WITH answers AS (
  SELECT
    ${keys},
    __answered,
    version,
    as_of,
    struct(kind, ${shown_names}) AS __answer,
    lead(__answered) OVER (
      PARTITION BY
        ${keys}
      ORDER BY __answered, version
    ) AS __until
  FROM ${view}_answered
)
SELECT
  ${keys},
  timestamp_micros(__answered) AS valid_from,
  timestamp_micros(__until) AS valid_to,
  as_of,
  version,
  ${answered_values}
FROM answers
WHERE (__until IS NULL OR __until > unix_micros(:start))
  AND __until IS DISTINCT FROM __answered
ORDER BY
  ${keys},
  __answered
