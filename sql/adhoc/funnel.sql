-- funnel: of the profiles that highlighted a title, how many selected it, and how many viewed it?
-- grain: one row per title (gti) that a profile highlighted in the last 24 hours
-- input: engagement_features
-- read:  a profile counts as selected when it also highlighted the title, and as viewed when it did
--        all three in the day, in any order; the rates are shares of the step before, 0 to 1
WITH steps AS (
  SELECT
    gti,
    highlight_count_1d > 0 AS highlighted,
    highlight_count_1d > 0 AND select_count_1d > 0 AS selected,
    highlight_count_1d > 0 AND select_count_1d > 0 AND view_count_1d > 0 AS viewed
  FROM engagement_features
),
per_title AS (
  SELECT
    gti,
    count_if(highlighted) AS highlighted,
    count_if(selected) AS selected,
    count_if(viewed) AS viewed
  FROM steps
  GROUP BY gti
)
SELECT
  gti,
  highlighted,
  selected,
  viewed,
  round(selected / highlighted, 3) AS select_rate,
  round(viewed / nullif(selected, 0), 3) AS view_rate
FROM per_title
WHERE highlighted > 0
ORDER BY highlighted DESC, selected DESC, viewed DESC, gti
