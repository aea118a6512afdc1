-- served_values: what a view's gold answered for keys at times.
-- grain:      one row per keys and time
-- input:      ${view}_spine_edges, the distinct keys and times of a spine, in microseconds since 1970,
--             and ${view}_answered, the history's rows of changed keys with __answered, since when
--             each is the answer, in microseconds too, as temporary views
-- An answer holds from its own time on, and a key without one has the empty values.
WITH moments AS (
  SELECT
    ${keys},
    2 * __answered AS __place,
    version AS __version,
    CAST(NULL AS BIGINT) AS __edge,
    struct(kind, ${shown_names}) AS __answer
  FROM ${view}_answered
  UNION ALL
  SELECT
    ${keys},
    2 * __edge + 1 AS __place,
    CAST(NULL AS BIGINT) AS __version,
    __edge,
    NULL AS __answer
  FROM ${view}_spine_edges
),
latest AS (
  SELECT
    ${keys},
    __edge,
    last_value(__answer, TRUE) OVER (
      PARTITION BY
        ${keys}
      ORDER BY __place, __version
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS __answer
  FROM moments
)
SELECT
  ${keys},
  __edge,
  ${answered_values}
FROM latest
WHERE __edge IS NOT NULL
