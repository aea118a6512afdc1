-- incremental: what changes asks for, gold's values and what to add to them; for features that add up.
-- grain:      one row per changed keys; __action is insert, update or delete
-- input:      ${view}_moved, the result of delta as a temporary view, and ${view}_features
WITH summed AS (
  SELECT
    ${keys},
    max(__known) AS __known,
    ${sums}
  FROM (
    SELECT *, 0 AS __known FROM ${view}_moved
    UNION ALL
    SELECT
      ${keys},
      ${term_names},
      1 AS __known
    FROM ${gold} AS gold
    LEFT SEMI JOIN ${view}_moved AS moved ON ${moved_is_gold}
  )
  GROUP BY
    ${keys}
),
fresh AS (
  SELECT
    ${keys},
    __known,
    ${features_of_sums}
  FROM summed
)
SELECT
  ${keys},
  ${feature_names},
  CASE
    WHEN __known = 0 THEN 'insert'
    WHEN ${empty_rows_leave} AND ${is_empty} THEN 'delete'
    ELSE 'update'
  END AS __action
FROM fresh
