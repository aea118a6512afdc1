-- spine_buckets: the bucket rows of a spine's keys that a window of one of its rows may hold.
-- grain:      one row per bucket row, with the number of its key
-- input:      ${view}_known_buckets, the bucket table at one version, and ${view}_spine_keys, the
--             keys of a spine, each with a number, as temporary views
-- parameters: :first TIMESTAMP, where the earliest window starts; :end TIMESTAMP, the latest edge
--             :batch BIGINT, the newest batch that counts
SELECT
  known.*,
  __key
FROM ${view}_known_buckets AS known
JOIN ${view}_spine_keys AS spine ON ${bucket_is_of_spine}
WHERE bucket_hour > :first - INTERVAL '60' MINUTE
  AND bucket_hour < :end
  AND bucket_start >= :first
  AND bucket_start < :end
  AND batch <= :batch
