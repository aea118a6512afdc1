-- diff: the keys whose features differ between two sets of rows, with their new values.
-- grain:      one row per changed keys; __action is insert, update or delete
-- input:      fresh, the features as they should be, and gold, as they are; an absent row and an
--             empty one mean the same
SELECT
  ${either_keys},
  ${fresh_features},
  CASE
    WHEN ${gold_is_absent} THEN 'insert'
    WHEN ${empty_rows_leave} AND ${fresh_is_empty} THEN 'delete'
    ELSE 'update'
  END AS __action
FROM fresh
FULL OUTER JOIN gold
  ON ${fresh_is_gold}
WHERE ${differs}
  OR (${empty_rows_leave} AND NOT ${gold_is_absent} AND ${fresh_is_empty})
