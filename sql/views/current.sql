-- current: gold with the time it stands for; people read this instead of the bare table.
-- grain: one row per keys
-- input: ${view}_features, ${view}_status (may trail gold by a minute, never leads)
SELECT
  ${shown},
  status.as_of,
  status.age_seconds
FROM ${view}_features AS features
LEFT JOIN ${view}_status AS status
