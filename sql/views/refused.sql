-- refused: how many records were refused, by the day they came and the reason.
-- grain: one row per ingest_date and reason; a record that broke two rules counts under both
-- input: ${source}_quarantine
WITH broken AS (
  SELECT
    ingest_date,
    batch,
    size(reasons) AS rules,
    explode(reasons) AS reason
  FROM ${source}_quarantine
)
SELECT
  ingest_date,
  reason,
  count(*) AS records,
  count_if(rules = 1) AS alone,
  max(batch) AS last_batch
FROM broken
GROUP BY ingest_date, reason
