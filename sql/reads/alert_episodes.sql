-- alert_episodes: each episode of a pipeline's alerts, those that go on first, then the newest.
-- grain:      one row per episode
-- input:      ${source}_alerts
WITH episodes AS (
  SELECT
    alert,
    view,
    key,
    episode,
    min(fired_at) AS fired_at,
    max(CASE WHEN state = 'resolved' THEN at END) AS resolved_at,
    max(CASE WHEN state = 'fired' THEN features END) AS features
  FROM ${source}_alerts
  GROUP BY alert, view, key, episode
)
SELECT
  alert,
  view,
  key,
  episode,
  fired_at,
  resolved_at,
  features
FROM episodes
ORDER BY resolved_at IS NOT NULL, fired_at DESC, alert, key
LIMIT 1000
