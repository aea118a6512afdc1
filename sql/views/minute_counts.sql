-- engagement_minute_counts: the long form of the buckets, for people who count events.
-- grain: one row per profile_id, gti, event_type and bucket_minute with at least one event
-- input: engagement_buckets
SELECT
  profile_id,
  gti,
  event_type,
  bucket_start AS bucket_minute,
  sum(bucket_count) AS count
FROM engagement_buckets
UNPIVOT (
  bucket_count FOR event_type IN (
    select_count AS `select`,
    highlight_count AS highlight,
    view_count AS view
  )
)
WHERE bucket_count > 0
GROUP BY profile_id, gti, event_type, bucket_start
