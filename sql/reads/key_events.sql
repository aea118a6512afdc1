-- key_events: one key's events in the longest window at a point in time, and where each came from.
-- grain:      one row per event that counts in something, of the newest :most, the newest first;
--             counts_in names the bucket columns whose condition it meets; of_all is how many there are
-- input:      known_events and known_records, the pipeline's events and bronze tables as temporary
--             views, and tidemill_batches
-- parameters: :as_of TIMESTAMP, a minute boundary: windows are [as_of - length, as_of)
--             :most BIGINT, how many
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
counted AS (
  SELECT
    *,
    count(*) OVER () AS of_all,
    row_number() OVER (ORDER BY ${event_time} DESC, record_id) AS place
  FROM mine
  WHERE size(counts_in) > 0
),
newest AS (
  SELECT *
  FROM counted
  WHERE place <= :most
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
  SELECT DISTINCT newest.record_id
  FROM newest
  INNER JOIN passed
    ON passed.as_of >= timestamp_seconds(unix_seconds(newest.bucket_start) + ${bucket_seconds})
    AND passed.committed_at <= newest.ingested_at
)
SELECT
  newest.record_id,
  records.topic,
  records.partition,
  records.offset,
  newest.event_id,
  newest.${event_time} AS event_timestamp,
  newest.ingested_at,
  newest.batch,
  late.record_id IS NOT NULL AS late,
  newest.bucket_start,
  newest.counts_in,
  newest.of_all
FROM newest
LEFT JOIN known_records AS records
  ON records.ingest_date = CAST(newest.ingested_at AS DATE)
  AND records.record_id = newest.record_id
LEFT JOIN late
  ON late.record_id = newest.record_id
ORDER BY event_timestamp DESC, newest.record_id
