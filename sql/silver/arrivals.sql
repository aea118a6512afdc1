-- arrivals: what the state has not seen yet: bucket rows, a tick for each live key, and the clock.
-- grain:      one row per bucket row; with :ticks one per live keys, its bucket_start null; and one
--             whose keys are null, so that (batch, as_of) is told when nothing else is
-- input:      ${view}_buckets
-- parameters: :as_of TIMESTAMP, :batch BIGINT, as in features; :ticks BOOLEAN
--             :as_of_before, :batch_before, where the arrivals stand
-- A key is live when one of its buckets was in the longest window then. Buckets after as_of, which
-- the wall clock has, come along: they count when their minute ends.
SELECT
  ${keys},
  bucket_start,
  ${partial_names},
  batch,
  :as_of AS as_of
FROM ${view}_buckets
WHERE bucket_hour > :as_of - ${horizon_and_hour}
  AND bucket_start >= :as_of - ${horizon}
  AND batch > :batch_before
  AND batch <= :batch
UNION ALL
SELECT DISTINCT
  ${keys},
  CAST(NULL AS TIMESTAMP) AS bucket_start,
  ${no_partials},
  :batch AS batch,
  :as_of AS as_of
FROM ${view}_buckets
WHERE :ticks
  AND bucket_hour > :as_of_before - ${horizon_and_hour}
  AND bucket_hour < :as_of_before
  AND bucket_start >= :as_of_before - ${horizon}
  AND bucket_start < :as_of_before
  AND batch <= :batch_before
UNION ALL
SELECT
  ${no_keys},
  CAST(NULL AS TIMESTAMP) AS bucket_start,
  ${no_partials},
  :batch AS batch,
  :as_of AS as_of
