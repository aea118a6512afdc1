-- bloom_contains: whether a Bloom filter of the gold table may hold a value; FALSE is certain.
-- grain:      one value, asked as text: CAST(x AS STRING) asks for a number
-- input:      filter, a column of the aggregate bloom: a byte with the number of slices, four with
--             the bits of a slice, then the slices. NULL, the filter of an absent row, holds nothing
-- A value sets one bit in each slice, by XXH64 of the value and the slice's number; bits are counted
-- from the filter's first byte, the lowest of a byte first. `contains` asks the same in Python.
CREATE OR REPLACE TEMPORARY FUNCTION bloom_contains(filter BINARY, value STRING)
RETURNS BOOLEAN
COMMENT 'Whether a Bloom filter of the gold table may hold a value; FALSE is certain'
RETURN filter IS NOT NULL AND value IS NOT NULL AND forall(
  transform(
    sequence(0, CAST(conv(hex(substring(filter, 1, 1)), 16, 10) AS INT) - 1),
    slice -> 40
      + slice * CAST(conv(hex(substring(filter, 2, 4)), 16, 10) AS BIGINT)
      + pmod(
          xxhash64(value, slice),
          CAST(conv(hex(substring(filter, 2, 4)), 16, 10) AS BIGINT)
        )
  ),
  place -> getbit(
    CAST(conv(hex(substring(filter, CAST(place DIV 8 AS INT) + 1, 1)), 16, 10) AS BIGINT),
    CAST(place % 8 AS INT)
  ) = 1
)
