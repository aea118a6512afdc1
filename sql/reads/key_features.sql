-- key_features: one key's features at a point in time, recomputed from the minute buckets.
-- grain:      one row, also for a key without a bucket, with the empty values
-- input:      ${view}_buckets
-- parameters: :as_of TIMESTAMP, :batch BIGINT, as in features
--             :key_<name> STRING, each of the view's keys as text
WITH asked AS (
  SELECT 1 AS one
),
horizon AS (
${horizon_statement}
),
fresh AS (
  SELECT
    ${keys},
    ${features}
  FROM horizon
  WHERE ${key_is}
  GROUP BY
    ${keys}
)
SELECT
  NOT (${fresh_is_absent}) AS found,
  CAST(NULL AS TIMESTAMP) AS updated_at,
  ${fresh_values}
FROM asked
LEFT JOIN fresh ON TRUE
