-- event_horizon: the bucket rows of the longest window at a point in time, made of the events.
-- grain:      one row per keys and bucket_start
-- input:      known_events, the events that count, as a temporary view; the bounds on event_hour prune
--             partitions
-- parameters: :as_of TIMESTAMP, as in features; :batch BIGINT, what the buckets are called by
WITH batch_events AS (
  SELECT *
  FROM known_events
  WHERE event_hour > :as_of - ${horizon_and_hour}
    AND event_hour < :as_of
)
SELECT *
FROM (
${buckets_statement}
)
WHERE bucket_start >= :as_of - ${horizon}
  AND bucket_start < :as_of
