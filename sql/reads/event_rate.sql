-- event_rate: how many events the pipeline has, and in how many hours there were any.
-- grain:      one row
-- input:      ${source}_events
SELECT
  count(*) AS events,
  count(DISTINCT event_hour) AS hours
FROM ${source}_events
