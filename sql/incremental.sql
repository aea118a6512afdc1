-- incremental: what changes asks for, from the rows that moved alone; for features that add up.
-- grain:      one row per changed keys; action is insert, update or delete
-- input:      ${view}_buckets, and ${view}_features as its ledger says
-- parameters: those of moved
WITH moved AS (
${moved_statement}
),
delta AS (
  SELECT
    ${keys},
    ${differences}
  FROM moved
  GROUP BY
    ${keys}
  HAVING ${any_difference}
),
summed AS (
  SELECT
    ${keys},
    max(known) AS known,
    ${sums}
  FROM (
    SELECT *, 0 AS known FROM delta
    UNION ALL
    SELECT
      ${keys},
      ${feature_names},
      1 AS known
    FROM ${view}_features AS gold
    LEFT SEMI JOIN delta ON ${delta_is_gold}
  )
  GROUP BY
    ${keys}
)
SELECT
  ${keys},
  ${feature_names},
  CASE
    WHEN known = 0 THEN 'insert'
    WHEN ${empty_rows_leave} AND ${is_empty} THEN 'delete'
    ELSE 'update'
  END AS action
FROM summed
