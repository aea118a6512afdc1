-- drift: how does what is watched today differ from yesterday?
-- grain: one row per title (gti) viewed in the last 48 hours, the most moved first
-- input: engagement_buckets, engagement_status
-- read:  today is [as_of - 1 d, as_of), yesterday the day before it. The shares are of all views of
--        the day, with half a view more for each title (so that none is 0), rounded. `drift` is the
--        title's part of the population stability index, (today - yesterday) x ln(today /
--        yesterday); its sum over all titles is the index: under 0.1 calm, over 0.25 another mix.
WITH views AS (
  SELECT
    buckets.gti,
    sum(
      CASE WHEN buckets.bucket_start < status.as_of - INTERVAL '24' HOUR THEN buckets.view_count
      ELSE 0 END
    ) AS yesterday,
    sum(
      CASE WHEN buckets.bucket_start >= status.as_of - INTERVAL '24' HOUR THEN buckets.view_count
      ELSE 0 END
    ) AS today
  FROM engagement_buckets AS buckets
  INNER JOIN engagement_status AS status
    ON buckets.bucket_hour > status.as_of - INTERVAL '49' HOUR
    AND buckets.bucket_start >= status.as_of - INTERVAL '48' HOUR
    AND buckets.bucket_start < status.as_of
    AND buckets.batch <= status.batch
  GROUP BY buckets.gti
  HAVING sum(buckets.view_count) > 0
),
shares AS (
  SELECT
    gti,
    yesterday,
    today,
    (2 * yesterday + 1) / sum(2 * yesterday + 1) OVER () AS share_yesterday,
    (2 * today + 1) / sum(2 * today + 1) OVER () AS share_today
  FROM views
)
SELECT
  gti,
  yesterday AS views_yesterday,
  today AS views_today,
  round(share_yesterday, 3) AS share_yesterday,
  round(share_today, 3) AS share_today,
  round((share_today - share_yesterday) * ln(share_today / share_yesterday), 4) AS drift
FROM shares
ORDER BY drift DESC, gti
