-- status: how fresh gold is, and the ledger of its newest recorded commit; overflowed is a JSON object
--         of the features that are null because a window holds too much, and for how many keys.
-- grain: one row, or none before the first batch
-- input: tidemill_batches, of which the newest day that tells of the view is read; that day is
--        looked for since the day of gold's newest ledger when the view was made, and everywhere
--        where nothing is recorded since
WITH newest AS (
  SELECT
    view,
    max(version) AS gold_version,
    max_by(as_of, version) AS as_of,
    max_by(ledger, version) AS ledger,
    max_by(generation, version) AS generation,
    max_by(committed_at, version) AS committed_at
  FROM tidemill_batches
  WHERE view = '${view}'
    AND date >= (
      SELECT coalesce(max(date), DATE '0001-01-01')
      FROM tidemill_batches
      WHERE view = '${view}'
        AND date >= DATE '${since}'
    )
  GROUP BY view
)
SELECT
  view,
  as_of,
  unix_seconds(current_timestamp()) - unix_seconds(as_of) AS age_seconds,
  gold_version,
  CAST(get_json_object(ledger, '$$.batch') AS BIGINT) AS batch,
  CAST(get_json_object(ledger, '$$.refresh') AS BIGINT) AS refresh,
  get_json_object(ledger, '$$.mode') AS mode,
  get_json_object(ledger, '$$.overflowed') AS overflowed,
  generation,
  committed_at
FROM newest
