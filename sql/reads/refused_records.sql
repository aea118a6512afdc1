-- refused_records: refused records, and whether a repaired one was landed in a record's place.
-- grain:      one row per refused record
-- input:      ${source}_quarantine; ${source}_replays and ${source}_bronze for the clause replayed
-- parameters: :first_day DATE, :last_day DATE, between which repaired records are landed
--             :since TIMESTAMP, the earliest ingested_at
--             :reason STRING, :prefix STRING, :prefix_length INT, a reason, or how it begins
WITH landed AS (
  SELECT '' AS record_id
-- clause: replayed
  UNION ALL
  SELECT sent.record_id
  FROM ${source}_replays AS sent
  INNER JOIN ${source}_bronze AS repaired
    ON repaired.record_id = sent.replay_id
  WHERE repaired.ingest_date BETWEEN :first_day AND :last_day
-- clause: records
)
SELECT
  records.*,
  landed.record_id IS NOT NULL AS replayed
FROM ${source}_quarantine AS records
LEFT JOIN landed
  ON landed.record_id = records.record_id
WHERE TRUE
-- clause: since
  AND records.ingested_at >= :since
-- clause: reason
  AND records.record_id IN (
    SELECT broken.record_id
    FROM (
      SELECT
        record_id,
        explode(reasons) AS reason
      FROM ${source}_quarantine
    ) AS broken
    WHERE broken.reason = :reason
      OR left(broken.reason, :prefix_length) = :prefix
  )
