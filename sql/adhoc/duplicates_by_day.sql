-- duplicates_by_day: of the records that came, how many were accepted, refused, or there already?
-- grain: one row per day (UTC) on which clean committed a batch
-- input: tidemill_batches
-- read:  exactly, records = accepted + refused + duplicates, in each batch and so in each day; the
--        day is that of the commit, not of the events. The shares are of all records, rounded, 0 to
--        1. May trail the tables by a minute.
SELECT
  date AS day,
  count(*) AS batches,
  sum(events) AS records,
  sum(accepted) AS accepted,
  sum(quarantined) AS refused,
  sum(duplicates) AS duplicates,
  round(sum(quarantined) / sum(events), 3) AS refused_share,
  round(sum(duplicates) / sum(events), 3) AS duplicate_share
FROM tidemill_batches
WHERE pipeline = 'engagement'
  AND query = 'clean'
GROUP BY date
HAVING sum(events) > 0
ORDER BY day DESC
