-- late_by_hour: in which hours do events come late?
-- grain: one row per hour of event time (UTC) that has an event, the 48 newest
-- input: engagement_events
-- read:  an event is late when it is older than the newest event of all earlier batches by a minute
--        or more (see late_events), so the first batch is never late and replays give the same
--        answer. `late_share` is rounded, 0 to 1; `most_minutes_behind` are whole minutes. Every
--        event counts in its own minute, however late.
WITH batches AS (
  SELECT
    batch,
    max(event_timestamp) AS newest
  FROM engagement_events
  GROUP BY batch
),
clocks AS (
  SELECT
    batch,
    max(newest) OVER (
      ORDER BY batch ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS clock
  FROM batches
),
lateness AS (
  SELECT
    events.event_hour,
    coalesce(
      greatest(
        (unix_seconds(clocks.clock) - unix_seconds(events.event_timestamp)) DIV 60, 0
      ), 0
    ) AS behind
  FROM engagement_events AS events
  INNER JOIN clocks
    ON events.batch = clocks.batch
)
SELECT
  event_hour,
  count(*) AS events,
  count_if(behind >= 1) AS late,
  round(count_if(behind >= 1) / count(*), 3) AS late_share,
  max(behind) AS most_minutes_behind
FROM lateness
GROUP BY event_hour
ORDER BY event_hour DESC
LIMIT 48
