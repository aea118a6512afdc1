-- landed: brings records into a table, each once: those whose record_id it does not have.
-- grain:      one row of counts; to Delta the commit is an append, which a stream may follow
-- input:      the table that :table names; landing, a temporary view with the table's columns
-- parameters: :table STRING; :days ARRAY<DATE>, the days of the records, by which bronze is pruned
MERGE INTO IDENTIFIER(:table) AS there
USING landing
ON there.record_id = landing.record_id
  AND array_contains(:days, there.ingest_date)
WHEN NOT MATCHED THEN INSERT *
