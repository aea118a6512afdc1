-- engagement_minute_counts: the long form of the buckets, for people who count events.
-- grain: one row per profile_id, gti, event_type and bucket_minute with at least one event
-- input: engagement_buckets
WITH counts AS (
  SELECT
    buckets.profile_id,
    buckets.gti,
    types.event_type,
    buckets.bucket_start,
    CASE
      WHEN types.event_type = 'select' THEN buckets.select_count
      WHEN types.event_type = 'highlight' THEN buckets.highlight_count
      ELSE buckets.view_count
    END AS bucket_count
  FROM engagement_buckets AS buckets
  CROSS JOIN (VALUES ('select'), ('highlight'), ('view')) AS types (event_type)
)
SELECT
  profile_id,
  gti,
  event_type,
  bucket_start AS bucket_minute,
  sum(bucket_count) AS count
FROM counts
WHERE bucket_count > 0
GROUP BY profile_id, gti, event_type, bucket_start
