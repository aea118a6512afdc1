-- retention: which titles bring their viewers back the next day?
-- grain: one row per title (gti) viewed in the day before the last 24 hours, the 50 most viewed
-- input: engagement_buckets, engagement_status
-- read:  `viewers_before` are profiles with a view in [as_of - 2 d, as_of - 1 d), `came_back` those
--        of them with a view of the same title in the last 24 hours, `new_viewers` profiles with a
--        view only in the last 24 hours. Exact counts; `retention` is rounded, 0 to 1.
WITH viewers AS (
  SELECT
    buckets.profile_id,
    buckets.gti,
    max(buckets.bucket_start < status.as_of - INTERVAL '24' HOUR) AS saw_before,
    max(buckets.bucket_start >= status.as_of - INTERVAL '24' HOUR) AS saw_now
  FROM engagement_buckets AS buckets
  INNER JOIN engagement_status AS status
    ON buckets.bucket_hour > status.as_of - INTERVAL '49' HOUR
    AND buckets.bucket_start >= status.as_of - INTERVAL '48' HOUR
    AND buckets.bucket_start < status.as_of
    AND buckets.batch <= status.batch
  WHERE buckets.view_count > 0
  GROUP BY buckets.profile_id, buckets.gti
)
SELECT
  gti,
  count_if(saw_before) AS viewers_before,
  count_if(saw_before AND saw_now) AS came_back,
  count_if(NOT saw_before) AS new_viewers,
  round(count_if(saw_before AND saw_now) / count_if(saw_before), 3) AS retention
FROM viewers
GROUP BY gti
HAVING count_if(saw_before) > 0
ORDER BY viewers_before DESC, came_back DESC, gti
LIMIT 50
