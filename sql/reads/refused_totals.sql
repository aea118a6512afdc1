-- refused_totals: how many records are refused, and how many of them are still open.
-- grain:      one row
-- input:      refused, the rows of refused_records
SELECT
  count(*) AS records,
  count_if(NOT replayed) AS open,
  count_if(replayed) AS replayed
FROM refused
