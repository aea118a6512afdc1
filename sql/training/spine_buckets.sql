-- spine_buckets: the bucket rows of a spine's keys that a window of one of its rows may hold.
-- grain:      one row per bucket row
-- input:      ${view}_known_buckets, the bucket table at one version, and ${view}_spine_edges, the
--             keys of a spine, as temporary views
-- parameters: :first TIMESTAMP, where the earliest window starts; :end TIMESTAMP, the latest edge
--             :batch BIGINT, the newest batch that counts
SELECT known.*
FROM ${view}_known_buckets AS known
LEFT SEMI JOIN ${view}_spine_edges AS edges ON ${bucket_is_of_edge}
WHERE bucket_hour > :first - INTERVAL '60' MINUTE
  AND bucket_hour < :end
  AND bucket_start >= :first
  AND bucket_start < :end
  AND batch <= :batch
