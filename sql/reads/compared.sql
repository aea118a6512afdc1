-- compared: how many keys the gold table has wrong against the features of bucket rows.
-- grain:      one row: keys that are not empty on either side, and how many of them are different; a
--             sketch is different when it is off by more than its declared accuracy
-- input:      horizon, the bucket rows of the longest window, and gold, the rows to compare
-- parameters: :as_of TIMESTAMP, as in features
SELECT
  count(*) AS keys,
  count_if(
    ${wrong}
  ) AS different
FROM (
  SELECT *
  FROM (
    SELECT
      ${keys},
      ${features},
      ${bounds}
    FROM horizon
    GROUP BY
      ${keys}
  )
  WHERE NOT (${values_are_empty})
) AS fresh
FULL OUTER JOIN (
  SELECT * FROM gold WHERE NOT (${values_are_empty})
) AS gold
  ON ${fresh_is_gold}
