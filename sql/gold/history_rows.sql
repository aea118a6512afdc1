-- history_rows: what gold answered from each of some versions on: the keys that changed since the one before.
-- grain:      one row per changed keys and version, and one without keys for each version
-- input:      ${view}_gold_changes, gold's change data feed, and ${view}_answers, for each of its
--             commits the version, as_of and served_at that readers take its changes for, as temporary
--             views
-- Of several commits that one version stands for, the newest row of a key is what it answers.
WITH changed AS (
  SELECT
    ${keys},
    version,
    as_of,
    served_at,
    max_by(
      struct(
        IF(_change_type = 'delete', 'gone', 'row') AS kind,
        ${shown_names}
      ),
      struct(_commit_version, _change_type <> 'delete' AS __stays)
    ) AS __newest
  FROM ${view}_gold_changes
  JOIN ${view}_answers ON _commit_version = __commit
  WHERE _change_type <> 'update_preimage'
  GROUP BY
    ${keys},
    version,
    as_of,
    served_at
)
SELECT
  ${keys},
  __newest.kind AS kind,
  FALSE AS begins,
  version,
  as_of,
  served_at,
  ${newest_values},
  CAST(served_at AS DATE) AS served_day
FROM changed
UNION ALL
SELECT
  ${no_keys},
  'version' AS kind,
  begins,
  version,
  as_of,
  served_at,
  ${no_values},
  CAST(served_at AS DATE) AS served_day
FROM ${view}_answers
WHERE __commit = version
