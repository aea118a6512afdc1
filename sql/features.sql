-- features: every window of the view at a point in time, recomputed from the minute buckets.
-- grain:      one row per keys with a bucket in the longest window
-- input:      ${view}_buckets; the bounds on bucket_hour (an hour overlaps the window) prune partitions
-- parameters: :as_of TIMESTAMP, a minute boundary: windows are [as_of - length, as_of)
--             :batch BIGINT, the newest batch that counts
WITH horizon AS (
  SELECT *
  FROM ${view}_buckets
  WHERE bucket_hour > :as_of - INTERVAL '${horizon_and_hour}' MINUTE
    AND bucket_hour < :as_of
    AND bucket_start >= :as_of - INTERVAL '${horizon}' MINUTE
    AND bucket_start < :as_of
    AND batch <= :batch
)
SELECT
  ${keys},
  ${features}
FROM horizon
GROUP BY
  ${keys}
