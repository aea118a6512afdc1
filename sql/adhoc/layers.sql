-- layers: how far has each layer come, and what lies between them?
-- grain: one row per layer, in the order of the flow
-- input: engagement_bronze, engagement_quarantine, engagement_events, engagement_buckets,
--        engagement_features, engagement_status
-- read:  `row_count` is exact; `newest` is the newest time that the layer holds: when land read the
--        record (bronze, quarantine), the event (events), the end of the minute (buckets), as_of
--        (gold; null before the first batch was recorded). `batch` is the newest one in it, of clean
--        for events and quarantine, of feature for buckets and gold: events two batches ahead of
--        buckets wait for feature.
SELECT
  '1 bronze' AS layer,
  count(*) AS row_count,
  max(ingested_at) AS newest,
  CAST(NULL AS BIGINT) AS batch
FROM engagement_bronze
UNION ALL
SELECT
  '2 quarantine' AS layer,
  count(*) AS row_count,
  max(ingested_at) AS newest,
  max(batch) AS batch
FROM engagement_quarantine
UNION ALL
SELECT
  '3 events' AS layer,
  count(*) AS row_count,
  max(event_timestamp) AS newest,
  max(batch) AS batch
FROM engagement_events
UNION ALL
SELECT
  '4 buckets' AS layer,
  count(*) AS row_count,
  max(bucket_start) + INTERVAL '1' MINUTE AS newest,
  max(batch) AS batch
FROM engagement_buckets
UNION ALL
SELECT
  '5 gold' AS layer,
  count(*) AS row_count,
  max(status.as_of) AS newest,
  max(status.batch) AS batch
FROM engagement_features
LEFT JOIN engagement_status AS status
ORDER BY layer
