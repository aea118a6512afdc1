-- ticks: each refresh of gold, what it changed, and the seconds of each of its steps.
-- grain: one row per version of gold that a refresh wrote
-- input: tidemill_batches
SELECT
  version AS gold_version,
  committed_at,
  as_of,
  unix_seconds(committed_at) - unix_seconds(as_of) AS behind_seconds,
  get_json_object(ledger, '$$.mode') AS mode,
  events,
  keys_changed,
  seconds,
  aggregate(map_values(seconds), 0D, (total, step) -> total + step) AS total_seconds
FROM tidemill_batches
WHERE view = '${view}' AND ledger IS NOT NULL
