-- refused_record: a refused record whole.
-- grain:      one row per batch that refused it
-- input:      refused, the rows of refused_records
-- parameters: :record_id STRING
SELECT *
FROM refused
WHERE record_id = :record_id
