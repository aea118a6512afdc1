-- event_values: a view's features at each edge of a spine, from the terms of their windows.
-- grain:      one row per keys and edge
-- input:      ${view}_edge_terms, the terms by keys and edge, as a temporary view; __in_range is null
--             where there is nothing to merge
SELECT
  ${keys},
  __edge,
  ${values_of_terms}
FROM ${view}_edge_terms
