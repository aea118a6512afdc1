-- batches_since: what a pipeline's batches did since a time, as recorded.
-- grain:      one row per batch, as tidemill_batches has it
-- input:      tidemill_batches
-- parameters: :since TIMESTAMP, the earliest commit
SELECT *
FROM tidemill_batches
WHERE pipeline = '${source}'
  AND committed_at >= :since
