-- trending: which titles are watched more than usual in the last hour?
-- grain: one row per title (gti) with at least `at_least` views in the last hour
-- input: engagement_features
-- read:  `lift` is the last hour's views over the mean hour of the last 24: 1 = as usual, 3 = three
--        times the mean, 24 = every view of the day fell into the last hour. Titles with few views
--        jump easily: raise `at_least` in `parameters` on a lake with more events.
WITH parameters AS (
  SELECT 2 AS at_least
),
per_title AS (
  SELECT
    gti,
    sum(view_count_1h) AS views_1h,
    sum(view_count_1d) AS views_1d
  FROM engagement_features
  GROUP BY gti
)
SELECT
  gti,
  views_1h,
  views_1d,
  round(views_1h * 24 / views_1d, 2) AS lift
FROM per_title
CROSS JOIN parameters
WHERE views_1h >= at_least
ORDER BY lift DESC, views_1h DESC, gti
