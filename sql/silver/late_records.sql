-- late_records: events that came behind a stream's watermark.
-- grain:      one row per event
-- input:      ${source}_events; the bound on event_hour prunes partitions
-- parameters: :first TIMESTAMP, of events before it none is wanted, :seconds BIGINT, the watermark
-- What was the newest event before a batch, of those wanted, no older one can make another late.
WITH wanted AS (
  SELECT
    record_id,
    unix_micros(${event_time}) AS micros,
    batch
  FROM ${source}_events
  WHERE event_hour > :first - INTERVAL '60' MINUTE
    AND ${event_time} >= :first
),
newest AS (
  SELECT
    batch,
    max(micros) AS micros
  FROM wanted
  GROUP BY
    batch
),
seen AS (
  SELECT
    batch,
    max(micros) OVER (ORDER BY batch ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM newest
)
SELECT
  wanted.record_id
FROM wanted
INNER JOIN seen
  ON wanted.batch = seen.batch
WHERE wanted.micros <= seen.before - :seconds * 1000000
