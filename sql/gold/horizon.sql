-- horizon: the bucket rows of the longest window at a point in time.
-- grain:      one row per bucket row
-- input:      ${view}_buckets; the bounds on bucket_hour (an hour overlaps the window) prune partitions
-- parameters: :as_of TIMESTAMP, :batch BIGINT, as in features
SELECT *
FROM ${view}_buckets
WHERE bucket_hour > :as_of - ${horizon_and_hour}
  AND bucket_hour < :as_of
  AND bucket_start >= :as_of - ${horizon}
  AND bucket_start < :as_of
  AND batch <= :batch
