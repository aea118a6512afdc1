-- features: every window of the view at a point in time, recomputed from the minute buckets.
-- grain:      one row per keys with a bucket in the longest window
-- input:      ${view}_buckets
-- parameters: :as_of TIMESTAMP, a minute boundary: windows are [as_of - length, as_of)
--             :batch BIGINT, the newest batch that counts
WITH horizon AS (
${horizon_statement}
)
SELECT
  ${keys},
  ${features}
FROM horizon
GROUP BY
  ${keys}
