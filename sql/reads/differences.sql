-- differences: how many keys the gold table has wrong against the recompute from the buckets.
-- grain:      one row: keys that are not empty on either side, and how many of them are different
-- input:      ${view}_buckets, and gold_rows, the gold table's rows as a temporary view
-- parameters: :as_of TIMESTAMP, :batch BIGINT, as in features
WITH horizon AS (
${horizon_statement}
),
gold AS (
  SELECT * FROM gold_rows
)
${compared_statement}
