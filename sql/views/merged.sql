-- merged: the features at the end of each day that was recomputed, and gold for what comes after.
-- grain: one row per day and keys; no row of a key without any event in its windows
-- input: ${view}_batch, ${view}_features, ${view}_status (may trail gold by a minute, never leads)
SELECT
  recomputed_day AS day,
  ${keys},
  ${shown_names},
  CAST(date_add(recomputed_day, 1) AS TIMESTAMP) AS as_of,
  'batch' AS layer
FROM ${view}_batch
WHERE row_kind = 'row'
UNION ALL
SELECT
  CAST(status.as_of - INTERVAL '1' SECOND AS DATE) AS day,
  ${keys},
  ${shown_names},
  status.as_of,
  'live' AS layer
FROM ${view}_features
CROSS JOIN (SELECT as_of FROM ${view}_status) AS status
WHERE NOT (${values_are_empty})
  AND status.as_of > coalesce(
    (
      SELECT CAST(date_add(max(recomputed_day), 1) AS TIMESTAMP)
      FROM ${view}_batch
      WHERE row_kind = 'day'
    ),
    TIMESTAMP '1900-01-01 00:00:00'
  )
