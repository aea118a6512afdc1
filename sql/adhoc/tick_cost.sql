-- tick_cost: what does a refresh of gold read, change and take, by the way it went?
-- grain: one row per mode (recompute, incremental ...)
-- input: tidemill_batches
-- read:  counts are exact; seconds are this machine's: the merge's own and, in `other_seconds`, the
--        other steps' (append, read, diff), as medians over the refreshes. The first refresh of a
--        session is slower by several times, so medians, not means.
WITH refreshes AS (
  SELECT
    from_json(ledger, 'mode STRING').mode AS mode,
    keys_changed,
    coalesce(buckets, 0) AS buckets,
    coalesce(seconds['merge'], 0) AS merge_seconds,
    aggregate(map_values(seconds), CAST(0 AS DOUBLE), (total, step) -> total + step) AS seconds
  FROM tidemill_batches
  WHERE view = 'engagement'
)
SELECT
  mode,
  count(*) AS refreshes,
  sum(buckets) AS bucket_rows,
  sum(keys_changed) AS keys_changed,
  round(sum(keys_changed) / count(*), 1) AS keys_per_refresh,
  round(percentile(merge_seconds, 0.5), 3) AS merge_seconds,
  round(percentile(seconds - merge_seconds, 0.5), 3) AS other_seconds
FROM refreshes
GROUP BY mode
ORDER BY refreshes DESC, mode
