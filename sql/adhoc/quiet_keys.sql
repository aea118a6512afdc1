-- quiet_keys: who was active in the last 24 hours, but not in the last one?
-- grain: one row per profile_id and gti, the 50 most active
-- input: engagement_features, engagement_buckets, engagement_status
-- read:  `last_active` is the minute of the key's newest event, `quiet_minutes` the time from that
--        minute's end to as_of (60 or more, by the question); nothing here depends on the time of
--        asking
WITH quiet AS (
  SELECT
    profile_id,
    gti,
    select_count_1d + highlight_count_1d + view_count_1d AS events_1d
  FROM engagement_features
  WHERE select_count_1d + highlight_count_1d + view_count_1d > 0
    AND select_count_1h + highlight_count_1h + view_count_1h = 0
),
last_buckets AS (
  SELECT
    buckets.profile_id,
    buckets.gti,
    status.as_of,
    max(buckets.bucket_start) AS last_active
  FROM engagement_buckets AS buckets
  INNER JOIN engagement_status AS status
    ON buckets.bucket_hour > status.as_of - INTERVAL '25' HOUR
    AND buckets.bucket_start < status.as_of
    AND buckets.batch <= status.batch
  GROUP BY buckets.profile_id, buckets.gti, status.as_of
)
SELECT
  quiet.profile_id,
  quiet.gti,
  quiet.events_1d,
  last_buckets.last_active,
  (unix_seconds(last_buckets.as_of) - unix_seconds(last_buckets.last_active)) DIV 60 - 1
    AS quiet_minutes
FROM quiet
INNER JOIN last_buckets
  ON quiet.profile_id = last_buckets.profile_id
  AND quiet.gti = last_buckets.gti
ORDER BY events_1d DESC, quiet_minutes DESC, profile_id, gti
LIMIT 50
