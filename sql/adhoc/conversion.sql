-- conversion: of the selects of a title, how many does a view of it by the same profile follow?
-- grain: one row per title (gti) with a select in the last 24 hours of event time
-- input: engagement_events
-- read:  a select converts when the profile's next view of the title comes within `within`, at the
--        same instant or later; exact to the microsecond of event time. Several selects before one
--        view each convert. A select younger than `within` may still convert. `median_minutes` is
--        of those that did.
WITH parameters AS (
  SELECT INTERVAL '30' MINUTE AS within
),
newest AS (
  SELECT max(event_timestamp) AS newest
  FROM engagement_events
),
steps AS (
  SELECT
    events.profile_id,
    events.gti,
    events.event_type,
    events.event_timestamp,
    min(CASE WHEN events.event_type = 'view' THEN events.event_timestamp END) OVER (
      PARTITION BY events.profile_id, events.gti
      ORDER BY events.event_timestamp
      RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
    ) AS next_view
  FROM engagement_events AS events
  INNER JOIN newest
    ON events.event_hour > newest.newest - INTERVAL '25' HOUR
    AND events.event_timestamp > newest.newest - INTERVAL '24' HOUR
),
selects AS (
  SELECT
    steps.gti,
    unix_seconds(steps.next_view) - unix_seconds(steps.event_timestamp) AS seconds_to_view,
    coalesce(steps.next_view <= steps.event_timestamp + parameters.within, FALSE) AS converted
  FROM steps
  CROSS JOIN parameters
  WHERE steps.event_type = 'select'
)
SELECT
  gti,
  count(*) AS selects,
  count_if(converted) AS converted,
  round(count_if(converted) / count(*), 3) AS conversion,
  round(percentile(CASE WHEN converted THEN seconds_to_view END, 0.5) / 60, 1) AS median_minutes
FROM selects
GROUP BY gti
ORDER BY selects DESC, converted DESC, gti
