-- horizon_by_hours: what horizon yields, with whole hours added up where maintenance has done so.
-- grain:      one row per bucket row or hour row that a window needs
-- input:      ${view}_buckets, and ${view}_hour_rows, the hours of one version, a temporary view;
--             every condition is one that file statistics answer
-- parameters: :as_of TIMESTAMP, :batch BIGINT, as in features
--             :hours BIGINT, the newest batch whose buckets are in the hours
-- A window takes an hour row when it holds the whole hour. It takes a minute row that an hour row
-- covers too only when it does not hold the whole hour: when it starts after __covered_from, or
-- ends within that hour. __last is the last second of a row.
SELECT
  ${keys},
  bucket_start,
  ${partial_names},
  CASE
    WHEN batch <= :hours AND bucket_hour <= :as_of - INTERVAL '60' MINUTE THEN bucket_hour
    ELSE :as_of - ${horizon_and_hour}
  END AS __covered_from,
  bucket_start AS __last
FROM (
${horizon_statement}
)
WHERE batch > :hours
  OR bucket_start >= timestamp_seconds(floor(unix_seconds(:as_of) / 3600) * 3600)
  OR ${edge_hours}
UNION ALL
SELECT
  ${keys},
  bucket_hour AS bucket_start,
  ${partial_names},
  :as_of - ${horizon_and_hour} AS __covered_from,
  bucket_hour + INTERVAL '3599' SECOND AS __last
FROM ${view}_hour_rows
WHERE bucket_day >= CAST(:as_of - ${horizon} AS DATE)
  AND bucket_hour >= :as_of - ${horizon}
  AND bucket_hour <= :as_of - INTERVAL '60' MINUTE
  AND batch <= :hours
