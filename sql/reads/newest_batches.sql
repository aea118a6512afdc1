-- newest_batches: up to which version of each table tidemill_batches tells what a pipeline did.
-- grain:      one row per query and view
-- input:      tidemill_batches
-- parameters: :since_day DATE, the first day that is read
SELECT
  query,
  view,
  max(version) AS version
FROM tidemill_batches
WHERE pipeline = '${source}'
  AND date >= :since_day
GROUP BY
  query,
  view
