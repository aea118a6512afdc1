-- replayed_days: between which days repaired records were landed.
-- grain:      one row; null where none was
-- input:      ${source}_replays
SELECT
  min(ingest_date) AS first_day,
  max(ingest_date) AS last_day
FROM ${source}_replays
