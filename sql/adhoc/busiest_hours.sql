-- busiest_hours: at which hours of the day is most going on?
-- grain: one row per hour of the day (UTC) with an event in the last 7 days, busiest first
-- input: engagement_buckets, engagement_status
-- read:  `per_day` is the mean over the days on which the hour has an event, rounded; `share` is the
--        hour's part of all events, 0 to 1. Counts are exact. With days of unlike length at the
--        start (a young lake) compare per_day, not events.
WITH hours AS (
  SELECT
    hour(buckets.bucket_hour) AS hour_utc,
    to_date(buckets.bucket_hour) AS day,
    sum(buckets.select_count + buckets.highlight_count + buckets.view_count) AS events,
    sum(buckets.view_count) AS views
  FROM engagement_buckets AS buckets
  INNER JOIN engagement_status AS status
    ON buckets.bucket_hour >= status.as_of - INTERVAL '7' DAY
    AND buckets.bucket_start < status.as_of
    AND buckets.batch <= status.batch
  GROUP BY ALL
)
SELECT
  hour_utc,
  sum(events) AS events,
  sum(views) AS views,
  count(*) AS days,
  round(sum(events) / count(*), 1) AS per_day,
  round(sum(events) / sum(sum(events)) OVER (), 3) AS share
FROM hours
GROUP BY hour_utc
ORDER BY events DESC, hour_utc
