-- volumes: what each query carried, by the hour of its commits.
-- grain: one row per pipeline, query, view and hour with at least one batch
-- input: tidemill_batches
SELECT
  pipeline,
  query,
  view,
  date_trunc('HOUR', committed_at) AS hour,
  count(*) AS batches,
  sum(events) AS events,
  sum(accepted) AS accepted,
  sum(quarantined) AS quarantined,
  sum(duplicates) AS duplicates,
  sum(buckets) AS buckets,
  sum(keys_changed) AS keys_changed
FROM tidemill_batches
WHERE query IN ('land', 'clean', 'feature', 'refresh')
GROUP BY pipeline, query, view, date_trunc('HOUR', committed_at)
