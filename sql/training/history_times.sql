-- history_times: the answers from which on the history is whole, each with the one before it.
-- grain:      one row per time at which the history begins, or begins again after a gap
-- input:      ${view}_versions, the history's rows of versions with __answered, since when each is the
--             answer, in microseconds since 1970, as a temporary view
SELECT
  __answered AS begins,
  __before AS before
FROM (
  SELECT
    *,
    lag(__answered) OVER (ORDER BY version) AS __before
  FROM ${view}_versions
)
WHERE begins
ORDER BY __answered
