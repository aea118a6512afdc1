-- prefix_sums: the terms that add up, over each window at each edge, as differences of running sums.
-- grain:      one row per keys and edge
-- input:      ${view}_spine_edges, the distinct keys and edges of a spine, in seconds since 1970, and
--             ${view}_spine_buckets, the bucket rows of its keys, as temporary views
-- A window's start and end are looked up among the buckets of the key: both are rows of one order by
-- time, in which a moment comes before the bucket that starts then. So nothing is joined by a range.
WITH moments AS (
  SELECT
    ${keys},
    2 * unix_seconds(bucket_start) + 1 AS __place,
    CAST(NULL AS BIGINT) AS __edge,
    CAST(NULL AS INT) AS __depth,
    ${pieces}
  FROM ${view}_spine_buckets
  UNION ALL
  SELECT
    ${keys},
    2 * (__edge - __depth) AS __place,
    __edge,
    __depth,
    ${no_pieces}
  FROM (
    SELECT
      ${keys},
      __edge,
      explode(array(${depths})) AS __depth
    FROM ${view}_spine_edges
  )
),
running AS (
  SELECT
    ${keys},
    __edge,
    __depth,
    ${running_pieces}
  FROM moments
  WINDOW up_to AS (
    PARTITION BY
      ${keys}
    ORDER BY __place
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  )
),
at_edges AS (
  SELECT
    ${keys},
    __edge,
    ${pieces_at_depths}
  FROM running
  WHERE __edge IS NOT NULL
  GROUP BY
    ${keys},
    __edge
)
SELECT
  ${keys},
  __edge,
  ${prefix_terms}
FROM at_edges
