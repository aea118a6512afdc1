-- event_buckets: the buckets of a batch of events, a row of its own for each event.
-- grain:      one row per event
-- input:      batch_events, the batch as a temporary view
-- parameters: :batch BIGINT, as in buckets
-- What one event adds always fits its column. So these rows stand for a bucket whose sum does not.
WITH cut AS (
  SELECT
    *,
    monotonically_increasing_id() AS __event,
    timestamp_seconds(
      floor(unix_seconds(${event_time}) / ${bucket_seconds}) * ${bucket_seconds}
    ) AS bucket_start${selected}
  FROM batch_events
)
SELECT
  ${keys},
  bucket_start,
  :batch AS batch,
  ${partials},
  timestamp_seconds(floor(unix_seconds(bucket_start) / 3600) * 3600) AS bucket_hour,
  count(*) AS __events
FROM cut
WHERE ${keys_known}
GROUP BY
  ${keys},
  bucket_start,
  __event
