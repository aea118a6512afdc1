-- merge: brings the changed keys into the gold table; an unchanged key is not in the source.
-- grain:      one row of counts, or none when Delta skipped a refresh number it has seen
-- input:      ${view}_changes, the result of changes as a temporary view, with updated_at
-- A refresh runs it with only the clauses that its changes need: an insert clause costs an outer
-- join, and an insert alone is an append.
MERGE INTO ${view}_features AS gold
USING ${view}_changes AS changed
ON ${key_match}
-- clause: delete
WHEN MATCHED AND changed.__action = 'delete' THEN DELETE
-- clause: update
WHEN MATCHED AND changed.__action = 'update' THEN UPDATE SET
  ${assignments},
  updated_at = changed.updated_at
-- clause: insert
WHEN NOT MATCHED THEN INSERT (
  ${keys},
  ${feature_names},
  updated_at
) VALUES (
  ${changed_columns},
  changed.updated_at
)
