-- key_row: one key's features as the gold table holds them, empty values where it has no row.
-- grain:      one row, also for a key that is not there
-- input:      gold_rows, the gold table's rows as a temporary view
-- parameters: :key_<name> STRING, each of the view's keys as text
WITH asked AS (
  SELECT 1 AS one
),
fresh AS (
  SELECT *
  FROM gold_rows
  WHERE ${key_is}
)
SELECT
  NOT (${fresh_is_absent}) AS found,
  fresh.updated_at,
  ${fresh_values}
FROM asked
LEFT JOIN fresh ON TRUE
