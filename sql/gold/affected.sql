-- affected: what changes asks for, of the affected keys alone; for any feature.
-- grain:      one row per changed keys; __action is insert, update or delete
-- input:      ${view}_moved, the result of affected_keys as a temporary view, ${view}_buckets and
--             ${view}_features
-- parameters: :as_of TIMESTAMP, :batch BIGINT, as in features
WITH horizon AS (
${horizon_statement}
),
fresh AS (
  SELECT
    ${keys},
    ${features}
  FROM horizon
  LEFT SEMI JOIN ${view}_moved AS moved ON ${moved_is_horizon}
  GROUP BY
    ${keys}
),
gold AS (
  SELECT *
  FROM ${gold} AS gold
  LEFT SEMI JOIN ${view}_moved AS moved ON ${moved_is_gold}
)
${diff_statement}
