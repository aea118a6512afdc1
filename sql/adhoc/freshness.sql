-- freshness: up to when do the features count, and how old is that?
-- grain: one row; none before the first batch was recorded
-- input: engagement_status, engagement_features
-- read:  as_of is the end of every window; `active_keys` have an event in the longest one,
--        `last_change` is the as_of at which a value last moved. A replay's as_of is as old as its
--        events: age_seconds says something only where events arrive as they happen.
WITH keys AS (
  SELECT
    count(*) AS keys,
    count_if(select_count_1d + highlight_count_1d + view_count_1d > 0) AS active_keys,
    count_if(select_count_1h + highlight_count_1h + view_count_1h > 0) AS keys_of_the_hour,
    max(updated_at) AS last_change
  FROM engagement_features
)
SELECT
  status.view,
  status.as_of,
  keys.last_change,
  keys.keys,
  keys.active_keys,
  keys.keys_of_the_hour,
  status.batch,
  status.refresh,
  status.mode,
  status.gold_version,
  status.age_seconds
FROM engagement_status AS status
CROSS JOIN keys
ORDER BY status.view
