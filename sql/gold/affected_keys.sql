-- affected_keys: the keys of which a bucket row entered or left a window.
-- grain:      one row per affected keys
-- input:      ${view}_buckets
-- parameters: those of moved
WITH moved AS (
${moved_statement}
)
SELECT DISTINCT
  ${keys}
FROM moved
WHERE ${any_sign}
