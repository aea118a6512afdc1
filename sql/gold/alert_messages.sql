-- alert_messages: what is told of alerts elsewhere, a message for each time that one fires or is resolved.
-- grain:      one row per change, in the order in which they were found
-- input:      ${source}_unsent, rows of the alerts table with the version that appended them
-- parameters: :pipeline, by name
-- The key is the entity key, as of gold's messages: of several columns a JSON array of their texts.
WITH said AS (
  SELECT
    *,
    map_values(from_json(key, 'MAP<STRING, STRING>')) AS keys
  FROM ${source}_unsent
)
SELECT
  if(size(keys) = 1, element_at(keys, 1), to_json(keys)) AS key,
  episode,
  state,
  to_json(
    struct(
      alert,
      :pipeline AS pipeline,
      view,
      parse_json(key) AS keys,
      episode,
      state,
      at,
      fired_at,
      parse_json(features) AS features,
      version AS gold_version
    ),
    map('ignoreNullFields', 'false', 'timeZone', 'UTC')
  ) AS value,
  version,
  _commit_version
FROM said
ORDER BY _commit_version, version, at, alert, key, state, episode
