-- key_versions: what some versions of gold made of a key's row.
-- grain:      one row per version that changed it, the oldest first
-- input:      gold_changes, the change data feed of these versions
-- parameters: :key_<name> STRING, each of the view's keys as text
SELECT
  _commit_version AS version,
  _change_type = 'delete' AS removed,
  ${shown_names}
FROM gold_changes
WHERE ${key_is}
  AND _change_type <> 'update_preimage'
ORDER BY _commit_version
