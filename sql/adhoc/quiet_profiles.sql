-- quiet_profiles: which profiles have gone quiet in the last 12 hours?
-- grain: one row per profile_id with at most half as many events as in the 12 hours before, the 50
--        that lost most
-- input: engagement_features
-- read:  the last day is [as_of - 1 d, as_of), cut in the middle: `events_before` and `events_since`,
--        over all titles and types, exactly; 0 since = silence. `favourite` is the title with the
--        most events of the day, the first by name of equal ones. quiet_keys asks the same of profile
--        and title, for one hour.
WITH titles AS (
  SELECT
    profile_id,
    gti,
    select_count_1d + highlight_count_1d + view_count_1d AS events_1d,
    select_count_12h + highlight_count_12h + view_count_12h AS events_12h
  FROM engagement_features
),
profiles AS (
  SELECT
    profile_id,
    sum(events_1d - events_12h) AS events_before,
    sum(events_12h) AS events_since,
    count_if(events_1d > 0) AS titles,
    min_by(gti, struct(-events_1d AS most, gti)) AS favourite
  FROM titles
  GROUP BY profile_id
)
SELECT
  profile_id,
  events_before,
  events_since,
  titles,
  favourite
FROM profiles
WHERE events_before > 0 AND 2 * events_since <= events_before
ORDER BY events_before - events_since DESC, profile_id
LIMIT 50
