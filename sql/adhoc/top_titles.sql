-- top_titles: which titles are watched most now?
-- grain: one row per title (gti) with an event in the last 24 hours, the 20 most viewed
-- input: engagement_features, engagement_status
-- read:  the last hour decides the order, then the day; `profiles_1d` are profiles with any event
--        in the day; everything holds at as_of, the end of the windows, not at the time of asking
WITH per_title AS (
  SELECT
    gti,
    sum(view_count_1h) AS views_1h,
    sum(view_count_1d) AS views_1d,
    count_if(view_count_1d > 0) AS viewers_1d,
    count_if(select_count_1d + highlight_count_1d + view_count_1d > 0) AS profiles_1d
  FROM engagement_features
  GROUP BY gti
)
SELECT
  per_title.gti,
  per_title.views_1h,
  per_title.views_1d,
  per_title.viewers_1d,
  per_title.profiles_1d,
  status.as_of
FROM per_title
CROSS JOIN engagement_status AS status
WHERE per_title.profiles_1d > 0
ORDER BY views_1h DESC, views_1d DESC, gti
LIMIT 20
