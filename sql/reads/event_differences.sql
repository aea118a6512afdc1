-- event_differences: how many keys the gold table has wrong against the features of the accepted events.
-- grain:      one row: keys that are not empty on either side, and how many of them are different
-- input:      known_events, the events that count, and gold_rows, the gold table's rows, as temporary
--             views; the bounds on event_hour prune partitions
-- parameters: :as_of TIMESTAMP, as in features; :batch BIGINT, what the buckets are called by
--             :sample BIGINT, how many of 10,000 parts of the keys are compared; without the clauses
--             called sample it is all of them
WITH horizon AS (
  SELECT *
  FROM (
${event_horizon_statement}
  )
-- clause: sample
  WHERE ${in_sample}
-- clause: gold
),
gold AS (
  SELECT *
  FROM gold_rows
-- clause: sample
  WHERE ${in_sample}
-- clause: compared
)
${compared_statement}
