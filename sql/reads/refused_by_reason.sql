-- refused_by_reason: how many refused records each reason has, and how many of them are still open.
-- grain:      one row per reason, the most frequent first; a record that broke two rules counts in
--             both
-- input:      refused, the rows of refused_records
SELECT
  reason,
  count(*) AS records,
  count_if(NOT replayed) AS open,
  count_if(replayed) AS replayed,
  max(ingested_at) AS newest,
  min(record_id) AS example
FROM (
  SELECT
    record_id,
    ingested_at,
    replayed,
    explode(reasons) AS reason
  FROM refused
) AS broken
GROUP BY reason
ORDER BY records DESC, reason
