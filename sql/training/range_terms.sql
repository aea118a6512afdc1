-- range_terms: the terms that do not add up, over each window at each edge, merged from bucket rows.
-- grain:      one row per keys and edge that has a bucket row in a window
-- input:      ${view}_spine_edges, the distinct keys and edges of a spine, in seconds since 1970, and
--             ${view}_spine_buckets, the bucket rows of its keys, as temporary views
-- parameters: :oldest BIGINT, the day since 1970 of the oldest bucket but for the keys' base
-- A window takes the whole hours that it holds, each merged once before, and minutes of the hours
-- that it holds a part of. Minutes are found by their hour, hours by their day: by equality alone.
WITH bucket_rows AS (
  SELECT
    ${keys},
    FALSE AS __is_hour,
    unix_seconds(bucket_hour) DIV 3600 AS __bin,
    unix_seconds(bucket_start) AS __moment,
    unix_seconds(bucket_start) AS __last,
    unix_seconds(bucket_hour) DIV 3600 AS __hour,
    ${range_partials}
  FROM ${view}_spine_buckets
  UNION ALL
  SELECT
    ${keys},
    TRUE AS __is_hour,
    unix_seconds(bucket_hour) DIV 86400 AS __bin,
    unix_seconds(bucket_hour) AS __moment,
    unix_seconds(bucket_hour) + 3599 AS __last,
    unix_seconds(bucket_hour) DIV 3600 AS __hour,
    ${range_hours}
  FROM ${view}_spine_buckets
  GROUP BY
    ${keys},
    bucket_hour
),
bins AS (
  SELECT
    ${keys},
    __edge,
    FALSE AS __is_hour,
    explode(array_distinct(array(${edge_hours_of_spine}))) AS __bin
  FROM ${view}_spine_edges
  UNION ALL
  SELECT
    ${keys},
    __edge,
    TRUE AS __is_hour,
    explode(array_union(
      sequence(
        least(greatest((__edge - ${horizon_seconds}) DIV 86400, :oldest), __edge DIV 86400),
        __edge DIV 86400
      ),
      ${base_day}
    )) AS __bin
  FROM ${view}_spine_edges
)
SELECT
  ${keys},
  __edge,
  TRUE AS __in_range,
  ${range_terms}
FROM bins
JOIN bucket_rows USING (${key_names}, __is_hour, __bin)
GROUP BY
  ${keys},
  __edge
