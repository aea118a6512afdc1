-- running_rows: what running sums are made of: what each bucket row adds, and the edges to look up.
-- grain:      one row per bucket row, and one per keys and edge
-- input:      ${view}_spine_edges, the distinct keys and edges of a spine, in seconds since 1970,
--             ${view}_spine_keys, its keys, each with a number, and ${view}_spine_buckets, the bucket
--             rows of its keys with that number, as temporary views
SELECT
  __key,
  unix_seconds(bucket_start) AS __moment,
  FALSE AS __is_edge,
  ${added_partials}${no_period_starts}
FROM ${view}_spine_buckets
UNION ALL
SELECT
  __key,
  __edge AS __moment,
  TRUE AS __is_edge,
  ${nothing_added}${period_starts}
FROM ${view}_spine_edges
JOIN ${view}_spine_keys USING (${key_names})
