-- cuckoo_contains: whether a Cuckoo filter of the gold table may hold a value; FALSE is certain.
-- grain:      one value, asked as text: CAST(x AS STRING) asks for a number
-- input:      filter, a column of the aggregate cuckoo: the bits of a fingerprint, the number of
--             buckets, and the codes of the values. NULL, the filter of an absent row, holds nothing
-- A value's code is the lower bucket of its pair, then its fingerprint, both of its XXH64.
-- `contains` asks the same in Python.
CREATE OR REPLACE TEMPORARY FUNCTION cuckoo_contains(
  filter STRUCT<fingerprint: INT, buckets: INT, codes: ARRAY<BIGINT>>,
  value STRING
)
RETURNS BOOLEAN
COMMENT 'Whether a Cuckoo filter of the gold table may hold a value; FALSE is certain'
RETURN filter IS NOT NULL AND value IS NOT NULL AND array_contains(
  filter.codes,
  least(
    xxhash64(value) & (filter.buckets - 1),
    (xxhash64(value) & (filter.buckets - 1))
      ^ (
        (shiftrightunsigned(xxhash64(value), 40) & (shiftleft(1L, filter.fingerprint) - 1))
          * 1540483477
        & (filter.buckets - 1)
      )
  ) * shiftleft(1L, filter.fingerprint)
    + (shiftrightunsigned(xxhash64(value), 40) & (shiftleft(1L, filter.fingerprint) - 1))
)
