-- day_features: every window of the view at a point in time, recomputed from the events.
-- grain:      one row per keys that are not empty
-- input:      known_events, the events that count, as a temporary view; the bounds on event_hour prune
--             partitions
-- parameters: :as_of TIMESTAMP, as in features; :batch BIGINT, what the buckets are called by
WITH batch_events AS (
  SELECT *
  FROM known_events
  WHERE event_hour > :as_of - ${horizon_and_hour}
    AND event_hour < :as_of
),
horizon AS (
  SELECT *
  FROM (
${buckets_statement}
  )
  WHERE bucket_start >= :as_of - ${horizon}
    AND bucket_start < :as_of
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
