-- refreshes_at: the refreshes that brought a view's gold to a point in time, as recorded.
-- grain:      one row per refresh
-- input:      tidemill_batches
-- parameters: :as_of TIMESTAMP, the end of gold's windows then
SELECT
  version,
  ledger,
  committed_at
FROM tidemill_batches
WHERE view = '${view}'
  AND as_of = :as_of
