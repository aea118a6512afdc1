-- buckets: the buckets of a batch of events.
-- grain:      one row per keys and bucket_start
-- input:      batch_events, the batch as a temporary view
-- parameters: :batch BIGINT, the feature query's batch id
-- An event whose selected key is null belongs to no key, and is counted nowhere.
WITH cut AS (
  SELECT
    *,
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
  bucket_start
