-- merge: brings the changed keys into the gold table; an unchanged key is not in the source, so not rewritten.
-- grain:      one row of counts, or none when Delta skipped a refresh number it has seen
-- input:      ${view}_changes, the result of changes as a temporary view
-- parameters: :as_of TIMESTAMP
MERGE INTO ${view}_features AS gold
USING ${view}_changes AS changed
ON ${key_match}
WHEN MATCHED AND changed.action = 'delete' THEN DELETE
WHEN MATCHED THEN UPDATE SET
  ${assignments},
  updated_at = :as_of
WHEN NOT MATCHED THEN INSERT (
  ${keys},
  ${feature_names},
  updated_at
) VALUES (
  ${changed_columns},
  :as_of
)
