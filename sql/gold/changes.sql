-- changes: the keys whose features differ from the gold table, with their new values.
-- grain:      one row per changed keys; __action is insert, update or delete
-- input:      ${view}_buckets and ${view}_features
-- parameters: :as_of TIMESTAMP, :batch BIGINT, as in features
WITH fresh AS (
${features_statement}
),
gold AS (
  SELECT * FROM ${gold}
)
${diff_statement}
