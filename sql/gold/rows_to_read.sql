-- rows_to_read: how many bucket rows each way of a refresh reads after as_of moved, by whole hours.
-- grain:      one row
-- input:      ${view}_buckets; of each file its hour, its number of rows, and their batch
-- parameters: :as_of TIMESTAMP, where gold is brought; :low, :high, :batch_before, as in moved
SELECT
  count_if(bucket_hour > :as_of - ${horizon_and_hour} AND bucket_hour < :as_of) AS recompute,
  count_if(
    (
      batch > :batch_before
      AND bucket_hour > :as_of - ${horizon_and_hour}
      AND bucket_hour < :as_of
    )
    OR ${edge_partitions}
  ) AS incremental
FROM ${view}_buckets
WHERE bucket_hour > :low - ${horizon_and_hour}
  AND bucket_hour < :high
