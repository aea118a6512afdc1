-- sittings: how often and how long do profiles sit down to it?
-- grain: one row per profile_id with an event in the last 24 hours, the 50 with the most sittings
-- input: engagement_buckets, engagement_status
-- read:  a sitting ends when `gap` or more passes without an event, over all titles. Buckets know
--        minutes, so a gap may be off by one minute; a sitting of one minute lasts 1. A sitting that
--        began before the day, or still goes on at as_of, counts with what lies in the day.
WITH parameters AS (
  SELECT INTERVAL '30' MINUTE AS gap
),
minutes AS (
  SELECT
    buckets.profile_id,
    buckets.bucket_start,
    sum(buckets.select_count + buckets.highlight_count + buckets.view_count) AS events
  FROM engagement_buckets AS buckets
  INNER JOIN engagement_status AS status
    ON buckets.bucket_hour > status.as_of - INTERVAL '25' HOUR
    AND buckets.bucket_start >= status.as_of - INTERVAL '24' HOUR
    AND buckets.bucket_start < status.as_of
    AND buckets.batch <= status.batch
  GROUP BY buckets.profile_id, buckets.bucket_start
),
starts AS (
  SELECT
    minutes.*,
    coalesce(
      bucket_start - lag(bucket_start) OVER (PARTITION BY profile_id ORDER BY bucket_start)
        >= parameters.gap,
      TRUE
    ) AS starts
  FROM minutes
  CROSS JOIN parameters
),
numbered AS (
  SELECT
    profile_id,
    bucket_start,
    events,
    count_if(starts) OVER (PARTITION BY profile_id ORDER BY bucket_start) AS sitting
  FROM starts
),
sittings AS (
  SELECT
    profile_id,
    sitting,
    sum(events) AS events,
    (unix_seconds(max(bucket_start)) - unix_seconds(min(bucket_start))) DIV 60 + 1 AS minutes
  FROM numbered
  GROUP BY profile_id, sitting
)
SELECT
  profile_id,
  count(*) AS sittings,
  sum(events) AS events,
  round(avg(minutes), 1) AS mean_minutes,
  max(minutes) AS longest_minutes,
  round(sum(events) / count(*), 1) AS events_per_sitting
FROM sittings
GROUP BY profile_id
ORDER BY sittings DESC, events DESC, profile_id
LIMIT 50
