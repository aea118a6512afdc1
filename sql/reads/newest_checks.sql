-- newest_checks: what the newest run of a pipeline's quality gate found.
-- grain:      one row per check of that run
-- input:      tidemill_quality
WITH newest AS (
  SELECT max(at) AS at
  FROM tidemill_quality
  WHERE pipeline = '${source}'
)
SELECT
  checks.at,
  checks.table_name,
  checks.check_name,
  checks.ok,
  checks.found
FROM tidemill_quality AS checks
INNER JOIN newest ON checks.at = newest.at
WHERE checks.pipeline = '${source}'
ORDER BY checks.table_name, checks.check_name
