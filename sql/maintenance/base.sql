-- base: the bucket rows before an hour as one row per keys, which stands for all of them.
-- grain:      one row per keys
-- input:      ${view}_buckets, an earlier base among them
-- parameters: :before TIMESTAMP, an hour
-- The base is a bucket at 1900-01-01, which a lifetime holds and no other window does. Its batch is
-- the newest of what it is made of, so a refresh that has seen that has seen the base.
SELECT
  ${keys},
  timestamp_seconds(${beginning}) AS bucket_start,
  max(batch) AS batch,
  ${merged_partials},
  timestamp_seconds(${beginning}) AS bucket_hour
FROM ${view}_buckets
WHERE bucket_hour < :before
GROUP BY
  ${keys}
