-- hours: the minute buckets of some batches, added up by the hour.
-- grain:      one row per keys and bucket_hour
-- input:      ${view}_buckets
-- parameters: :batch BIGINT, the newest batch that counts, :batch_before, the newest that does not
SELECT
  ${keys},
  CAST(:batch AS BIGINT) AS batch,
  ${merged_partials},
  bucket_hour,
  CAST(bucket_hour AS DATE) AS bucket_day
FROM ${view}_buckets
WHERE batch > :batch_before
  AND batch <= :batch
GROUP BY
  ${keys},
  bucket_hour
