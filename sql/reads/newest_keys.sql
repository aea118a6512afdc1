-- newest_keys: the keys whose rows of gold changed last.
-- grain:      one row per key, the newest change first; twenty at most
-- input:      ${view}_features
SELECT
  ${keys},
  updated_at
FROM ${gold}
ORDER BY
  updated_at DESC,
  ${keys}
LIMIT 20
