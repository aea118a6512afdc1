-- key_buckets: one key's bucket rows in the longest window at a point in time, the newest first.
-- grain:      one row per bucket row
-- input:      ${view}_buckets
-- parameters: :as_of TIMESTAMP, :batch BIGINT, as in features
--             :key_<name> STRING, each of the view's keys as text
WITH horizon AS (
${horizon_statement}
)
SELECT
  bucket_start,
  batch,
  ${partial_names}
FROM horizon
WHERE ${key_is}
ORDER BY bucket_start DESC, batch DESC
