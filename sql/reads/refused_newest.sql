-- refused_newest: the newest refused records of which no repaired one was landed.
-- grain:      one row per record, twenty at most, the newest first
-- input:      refused, the rows of refused_records
SELECT
  record_id,
  reasons,
  ingested_at
FROM refused
WHERE NOT replayed
ORDER BY ingested_at DESC, record_id
LIMIT 20
