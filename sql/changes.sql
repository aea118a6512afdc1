-- changes: the keys whose features differ from the gold table, with their new values.
-- grain:      one row per changed keys; __action is insert, update or delete
-- input:      ${view}_buckets and ${view}_features; an absent row and an empty one mean the same
-- parameters: :as_of TIMESTAMP, :batch BIGINT, as in features
WITH fresh AS (
${features_statement}
)
SELECT
  ${either_keys},
  ${fresh_features},
  CASE
    WHEN ${gold_is_absent} THEN 'insert'
    WHEN ${empty_rows_leave} AND ${fresh_is_empty} THEN 'delete'
    ELSE 'update'
  END AS __action
FROM fresh
FULL OUTER JOIN ${view}_features AS gold
  ON ${fresh_is_gold}
WHERE ${differs}
  OR (${empty_rows_leave} AND NOT ${gold_is_absent} AND ${fresh_is_empty})
