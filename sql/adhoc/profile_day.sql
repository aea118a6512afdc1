-- profile_day: what did one profile do on its newest day, hour by hour, in its own time?
-- grain: one row per local hour and title (gti) with an event
-- input: engagement_buckets, engagement_status
-- read:  put the profile and its time zone (an IANA name) into `parameters`; the day is the local
--        day that holds as_of's last minute: for an earlier one put a date such as DATE'2026-11-20'
--        in place of `to_date(...)`. Tables hold UTC; from_utc_timestamp shifts it, so the session's
--        own zone must be UTC. An hour that the clock repeats in autumn is one row.
WITH parameters AS (
  SELECT
    'profile-1' AS profile_id,
    'Europe/Berlin' AS zone
),
day AS (
  SELECT
    profile_id,
    zone,
    to_date(from_utc_timestamp(as_of - INTERVAL '1' MINUTE, zone)) AS local_date
  FROM parameters
  CROSS JOIN engagement_status
),
local_buckets AS (
  SELECT
    buckets.*,
    day.local_date,
    from_utc_timestamp(buckets.bucket_start, day.zone) AS local_start
  FROM engagement_buckets AS buckets
  INNER JOIN day
    ON buckets.profile_id = day.profile_id
    -- every zone's day lies within these hours; they prune partitions
    AND buckets.bucket_hour >= CAST(day.local_date AS TIMESTAMP) - INTERVAL '15' HOUR
    AND buckets.bucket_hour < CAST(day.local_date AS TIMESTAMP) + INTERVAL '37' HOUR
)
SELECT
  date_format(local_start, 'yyyy-MM-dd HH:00') AS local_hour,
  gti,
  sum(highlight_count) AS highlights,
  sum(select_count) AS selects,
  sum(view_count) AS views
FROM local_buckets
WHERE to_date(local_start) = local_date
GROUP BY ALL
ORDER BY local_hour, gti
