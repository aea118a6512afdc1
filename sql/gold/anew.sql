-- anew: every row of the gold table, for one that is to be written with other columns.
-- grain:      one row per keys that are not empty or have a row
-- input:      ${view}_buckets, and ${view}_standing, the keys of gold's rows that stay, as a temporary
--             view
-- parameters: :as_of TIMESTAMP, :batch BIGINT, as in features
WITH fresh AS (
${features_statement}
)
SELECT
  ${either_keys},
  ${fresh_features},
  :as_of AS updated_at
FROM fresh
FULL OUTER JOIN ${view}_standing AS gold
  ON ${fresh_is_gold}
WHERE NOT (
  (${gold_is_absent} OR ${empty_rows_leave})
  AND ${fresh_is_empty}
)
