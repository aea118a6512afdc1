-- affected: what changes asks for, of the affected keys alone; for any feature.
-- grain:      one row per changed keys; __action is insert, update or delete
-- input:      ${view}_moved, the result of affected_keys as a temporary view, ${view}_buckets and
--             ${view}_features; an absent row and an empty one mean the same
-- parameters: :as_of TIMESTAMP, :batch BIGINT, as in features
WITH horizon AS (
  SELECT *
  FROM ${view}_buckets AS buckets
  LEFT SEMI JOIN ${view}_moved AS moved ON ${moved_is_bucket}
  WHERE bucket_hour > :as_of - INTERVAL '${horizon_and_hour}' MINUTE
    AND bucket_hour < :as_of
    AND bucket_start >= :as_of - INTERVAL '${horizon}' MINUTE
    AND bucket_start < :as_of
    AND batch <= :batch
),
fresh AS (
  SELECT
    ${keys},
    ${features}
  FROM horizon
  GROUP BY
    ${keys}
),
gold AS (
  SELECT *
  FROM ${view}_features AS gold
  LEFT SEMI JOIN ${view}_moved AS moved ON ${moved_is_gold}
)
SELECT
  ${either_keys},
  ${fresh_features},
  CASE
    WHEN ${gold_is_absent} THEN 'insert'
    WHEN ${empty_rows_leave} AND ${fresh_is_empty} THEN 'delete'
    ELSE 'update'
  END AS __action
FROM fresh
FULL OUTER JOIN gold
  ON ${fresh_is_gold}
WHERE ${differs}
  OR (${empty_rows_leave} AND NOT ${gold_is_absent} AND ${fresh_is_empty})
