-- differences: how many keys the gold table has wrong against the recompute from the buckets.
-- grain:      one row: keys that are not empty on either side, and how many of them are different
-- input:      ${view}_buckets, and gold_rows, the gold table's rows as a temporary view
-- parameters: :as_of TIMESTAMP, :batch BIGINT, as in features
WITH fresh AS (
${features_statement}
),
filled AS (
  SELECT * FROM fresh WHERE NOT (${is_empty})
),
gold AS (
  SELECT * FROM gold_rows WHERE NOT (${is_empty})
)
SELECT
  count(*) AS keys,
  count_if(
    ${differs}
  ) AS different
FROM filled AS fresh
FULL OUTER JOIN gold
  ON ${fresh_is_gold}
