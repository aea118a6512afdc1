-- profiles_since: where the time of a pipeline's profiled batches went, of those that began since a time.
-- grain:          one row per batch and stack, as tidemill_profiles has it
-- input:          tidemill_profiles
-- parameters:     :since TIMESTAMP, the earliest beginning
SELECT
  query,
  batch,
  started_at,
  stack,
  part,
  seconds,
  looks
FROM tidemill_profiles
WHERE pipeline = '${source}'
  AND started_at >= :since
ORDER BY started_at
