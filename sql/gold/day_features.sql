-- day_features: every window of the view at a point in time, recomputed from the events.
-- grain:      one row per keys that are not empty
-- input:      known_events, the events that count, as a temporary view
-- parameters: :as_of TIMESTAMP, as in features; :batch BIGINT, what the buckets are called by
WITH horizon AS (
${event_horizon_statement}
)
SELECT *
FROM (
  SELECT
    ${keys},
    ${features}
  FROM horizon
  GROUP BY
    ${keys}
)
WHERE NOT (${values_are_empty})
