-- key_events: one key's events in the longest window at a point in time, and where each came from.
-- grain:      one row per event, the newest first; counts_in names the bucket columns whose condition
--             it meets
-- input:      known_events and known_records, the pipeline's events and bronze tables as temporary
--             views, and tidemill_batches
-- parameters: :as_of TIMESTAMP, a minute boundary: windows are [as_of - length, as_of)
--             :key_<name> STRING, each of the view's keys as text
-- An event is late when it was ingested after a refresh had brought gold to an as_of at or beyond
-- the end of its bucket: gold had passed its minute without it.
WITH cut AS (
  SELECT
    *,
    timestamp_seconds(
      floor(unix_seconds(${event_time}) / ${bucket_seconds}) * ${bucket_seconds}
    ) AS bucket_start${selected}
  FROM known_events
  WHERE event_hour > :as_of - ${horizon_and_hour}
    AND event_hour < :as_of
),
mine AS (
  SELECT
    *,
    array_compact(array(
      ${counted}
    )) AS counts_in
  FROM cut
  WHERE ${key_is}
    AND bucket_start >= :as_of - ${horizon}
    AND bucket_start < :as_of
),
passed AS (
  SELECT
    as_of,
    min(committed_at) AS committed_at
  FROM tidemill_batches
  WHERE view = '${view}'
    AND as_of > :as_of - ${horizon}
  GROUP BY as_of
),
late AS (
  SELECT DISTINCT mine.record_id
  FROM mine
  INNER JOIN passed
    ON passed.as_of >= timestamp_seconds(unix_seconds(mine.bucket_start) + ${bucket_seconds})
    AND passed.committed_at <= mine.ingested_at
)
SELECT
  mine.record_id,
  records.topic,
  records.partition,
  records.offset,
  mine.event_id,
  mine.${event_time} AS event_timestamp,
  mine.ingested_at,
  mine.batch,
  late.record_id IS NOT NULL AS late,
  mine.bucket_start,
  mine.counts_in
FROM mine
LEFT JOIN known_records AS records
  ON records.ingest_date = CAST(mine.ingested_at AS DATE)
  AND records.record_id = mine.record_id
LEFT JOIN late
  ON late.record_id = mine.record_id
ORDER BY event_timestamp DESC, mine.record_id
