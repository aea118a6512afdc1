-- delta: what to add to each feature, from the bucket rows that moved; for features that add up.
-- grain:      one row per keys of which a feature changes
-- input:      ${view}_buckets
-- parameters: those of moved
WITH moved AS (
${moved_statement}
)
SELECT
  ${keys},
  ${differences}
FROM moved
GROUP BY
  ${keys}
HAVING ${any_difference}
