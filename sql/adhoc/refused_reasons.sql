-- refused_reasons: why are records refused, and what does one look like?
-- grain: one row per reason; a record that broke two rules counts under both
-- input: engagement_quarantine
-- read:  `alone` are records with this reason and no other: what mending it would bring in;
--        `example` is the start of the payload with the smallest record_id. The whole records, with
--        where they came from (topic, partition, offset), stand in engagement_quarantine.
WITH refusals AS (
  SELECT
    record_id,
    raw_payload,
    ingest_date,
    size(reasons) AS broken,
    explode(reasons) AS reason
  FROM engagement_quarantine
)
SELECT
  reason,
  count(*) AS records,
  count_if(broken = 1) AS alone,
  max(ingest_date) AS last_day,
  left(min_by(raw_payload, record_id), 48) AS example
FROM refusals
GROUP BY reason
ORDER BY records DESC, reason
