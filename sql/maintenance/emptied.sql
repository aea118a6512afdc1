-- emptied: the keys of the gold table whose every feature has been empty since a time.
-- grain:      one row per keys; __action is delete
-- input:      ${view}_features
-- parameters: :before TIMESTAMP, the last change of the row was earlier
SELECT
  ${keys},
  ${feature_names},
  'delete' AS __action
FROM ${view}_features
WHERE updated_at < :before
  AND ${is_empty}
