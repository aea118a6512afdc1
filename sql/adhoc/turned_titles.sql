-- turned_titles: for which titles did the trend turn within the last twelve hours?
-- grain: one row per title (gti) that rose and then fell, or fell and then rose
-- input: engagement_buckets, engagement_status
-- read:  events of all types in three spans of `span` that end at as_of: `before`, `middle`, `last`.
--        'peaked' = the middle is above both, 'bottomed' = below both; `turn` is by how many events
--        the two steps differ, so the largest turn stands first. Counts are exact.
WITH parameters AS (
  SELECT INTERVAL '4' HOUR AS span
),
events AS (
  SELECT
    buckets.gti,
    buckets.bucket_start >= status.as_of - parameters.span AS in_last,
    buckets.bucket_start < status.as_of - parameters.span * 2 AS in_before,
    buckets.select_count + buckets.highlight_count + buckets.view_count AS events
  FROM engagement_buckets AS buckets
  CROSS JOIN parameters
  INNER JOIN engagement_status AS status
    ON buckets.bucket_start >= status.as_of - parameters.span * 3
    AND buckets.bucket_start < status.as_of
    AND buckets.batch <= status.batch
),
spans AS (
  SELECT
    gti,
    sum(CASE WHEN in_before THEN events ELSE 0 END) AS before,
    sum(CASE WHEN in_before OR in_last THEN 0 ELSE events END) AS middle,
    sum(CASE WHEN in_last THEN events ELSE 0 END) AS last
  FROM events
  GROUP BY gti
)
SELECT
  gti,
  before,
  middle,
  last,
  CASE WHEN middle > last THEN 'peaked' ELSE 'bottomed' END AS trend,
  abs(2 * middle - before - last) AS turn
FROM spans
WHERE (middle > before AND middle > last) OR (middle < before AND middle < last)
ORDER BY turn DESC, gti
