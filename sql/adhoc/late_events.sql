-- late_events: how many events come late, and how late?
-- grain: one row per class of lateness that has an event
-- input: engagement_events
-- read:  late against the event clock: `behind` is the time from the event to the newest event of
--        all earlier batches, so the first batch is never late and replays give the same answer.
--        Every event counts in its own minute, however late; this only shows what to expect.
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
    events.profile_id,
    (unix_seconds(clocks.clock) - unix_seconds(events.event_timestamp)) DIV 60 AS behind
  FROM engagement_events AS events
  INNER JOIN clocks
    ON events.batch = clocks.batch
),
classes AS (
  SELECT
    profile_id,
    behind,
    CASE
      WHEN behind IS NULL OR behind < 1 THEN '0 in time'
      WHEN behind < 60 THEN '1 within the hour'
      WHEN behind < 720 THEN '2 within 12 hours'
      WHEN behind < 1440 THEN '3 within the day'
      ELSE '4 a day and more'
    END AS lateness
  FROM lateness
)
SELECT
  lateness,
  count(*) AS events,
  count(DISTINCT profile_id) AS profiles,
  max(greatest(behind, 0)) AS most_minutes_behind
FROM classes
GROUP BY lateness
ORDER BY lateness
