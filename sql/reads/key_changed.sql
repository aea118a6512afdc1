-- key_changed: the newest of some versions of gold that changed a key's row.
-- grain:      one row; null where none of them did
-- input:      gold_changes, the change data feed of these versions
-- parameters: :key_<name> STRING, each of the view's keys as text
SELECT max(_commit_version) AS version
FROM gold_changes
WHERE ${key_is}
