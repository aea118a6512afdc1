-- moved: the bucket rows that entered or left a window between two states of the gold table.
-- grain:      one row per bucket row that may have; each window's sign is 1 (entered), -1 (left) or 0
-- input:      ${view}_buckets; every condition is one that file statistics can answer
-- parameters: :as_of, :batch, as in features; :as_of_before, :batch_before, where gold stands
--             :low, :high TIMESTAMP, the earlier and the later of the two as_of
-- Rows new since then lie anywhere in the windows. Of the others only those moved that a window's
-- end passed, in [low, high), or its start, in [low - length, high - length).
SELECT
  ${keys},
  ${partial_names},
  ${signs}
FROM ${view}_buckets
WHERE bucket_hour > :low - ${horizon_and_hour}
  AND bucket_hour < :high
  AND batch <= :batch
  AND (
    (batch > :batch_before AND bucket_start >= :as_of - ${horizon})
    OR (bucket_start >= :low AND bucket_start < :high)
    OR ${edges}
  )
