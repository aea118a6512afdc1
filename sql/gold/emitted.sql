-- emitted: what changes asks for, of the keys whose values the state emitted.
-- grain:      one row per changed keys; __action is insert, update or delete
-- input:      ${view}_emitted, what the state emitted as a temporary view, and ${view}_features
-- parameters: :whole BOOLEAN, whether the state has emitted every key that it keeps; then a key of
--             gold that it did not emit is empty
WITH fresh AS (
  SELECT
    ${keys},
    ${feature_names}
  FROM ${view}_emitted
),
gold AS (
  SELECT *
  FROM ${gold} AS gold
  WHERE :whole OR EXISTS (SELECT 1 FROM ${view}_emitted AS moved WHERE ${moved_is_gold})
)
${diff_statement}
