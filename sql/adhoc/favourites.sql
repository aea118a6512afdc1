-- favourites: which titles does each profile like best now?
-- grain: one row per profile_id and rank 1 to 3, of the 50 most active profiles
-- input: engagement_features
-- read:  titles are ranked by views in the last 24 hours, then by all events of the day, then by
--        name, so the answer is the same each time. Titles without an event in the day are left
--        out. Counts are exact at as_of.
WITH titles AS (
  SELECT
    profile_id,
    gti,
    view_count_1d AS views_1d,
    select_count_1d + highlight_count_1d + view_count_1d AS events_1d
  FROM engagement_features
),
ranked AS (
  SELECT
    profile_id,
    gti,
    views_1d,
    events_1d,
    row_number() OVER (PARTITION BY profile_id ORDER BY views_1d DESC, events_1d DESC, gti) AS rank,
    sum(events_1d) OVER (PARTITION BY profile_id) AS profile_events_1d
  FROM titles
  WHERE events_1d > 0
),
profiles AS (
  SELECT
    *,
    dense_rank() OVER (ORDER BY profile_events_1d DESC, profile_id) AS place
  FROM ranked
)
SELECT
  profile_id,
  rank,
  gti,
  views_1d,
  events_1d,
  round(events_1d / profile_events_1d, 3) AS share_of_profile
FROM profiles
WHERE place <= 50 AND rank <= 3
ORDER BY place, rank
