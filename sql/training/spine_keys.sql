-- spine_keys: the keys of a spine, each with a number, which sorts quicker than its columns.
-- grain:      one row per keys
-- input:      ${view}_spine_edges, the keys and edges of a spine, as a temporary view
SELECT
  ${keys},
  CAST(row_number() OVER (
    ORDER BY
      ${keys}
  ) AS BIGINT) AS __key
FROM (
  SELECT DISTINCT
    ${keys}
  FROM ${view}_spine_edges
)
