-- alert_changes: when rules began and ceased to hold for keys, by what gold answered version by version.
-- grain:      one row per alert, key and change, in the columns of the alerts table but date
-- input:      ${view}_judged, a row per alert, key and answered version: whether the rule fires or ends
--             with it; ${view}_alerts_before, the newest change of each alert and key, as temporary views
-- parameters: :generation, which tells episodes of one lake from those of another, and :look, the look's number
-- One state machine for each alert and key, over its versions in their order: closed, open, closed ...
WITH looked AS (
  SELECT
    alert,
    key,
    sort_array(
      collect_list(struct(served_at, version, as_of, fires, ends, cooldown, features))
    ) AS looks,
    max(fires) AS fires
  FROM ${view}_judged
  GROUP BY alert, key
),
concerned AS (
  SELECT
    looked.alert,
    looked.key,
    looked.looks,
    coalesce(before.state = 'fired', FALSE) AS is_open,
    before.episode,
    before.fired_at,
    CASE WHEN before.state = 'resolved' THEN before.at END AS rests_since
  FROM looked
  LEFT JOIN ${view}_alerts_before AS before
    ON looked.alert = before.alert AND looked.key = before.key
  WHERE looked.fires OR before.state = 'fired'
),
changed AS (
  SELECT
    alert,
    key,
    explode(
      aggregate(
        looks,
        struct(
          is_open,
          episode,
          fired_at,
          rests_since,
          CAST(
            array() AS ARRAY<STRUCT<
              episode: STRING, state: STRING, at: TIMESTAMP, fired_at: TIMESTAMP,
              features: STRING, version: BIGINT, served_at: TIMESTAMP
            >>
          ) AS changes
        ),
        (known, look) -> CASE
          WHEN
            NOT known.is_open
            AND look.fires
            AND (
              known.rests_since IS NULL
              OR unix_seconds(look.as_of) - unix_seconds(known.rests_since) >= look.cooldown
            )
            THEN struct(
              TRUE AS is_open,
              left(sha2(concat_ws('|', :generation, :look, alert, key, look.version), 256), 16) AS episode,
              look.as_of AS fired_at,
              known.rests_since AS rests_since,
              concat(
                known.changes,
                array(
                  struct(
                    left(sha2(concat_ws('|', :generation, :look, alert, key, look.version), 256), 16)
                      AS episode,
                    'fired' AS state,
                    look.as_of AS at,
                    look.as_of AS fired_at,
                    look.features AS features,
                    look.version AS version,
                    look.served_at AS served_at
                  )
                )
              ) AS changes
            )
          WHEN known.is_open AND look.ends AND NOT look.fires
            THEN struct(
              FALSE AS is_open,
              known.episode AS episode,
              known.fired_at AS fired_at,
              look.as_of AS rests_since,
              concat(
                known.changes,
                array(
                  struct(
                    known.episode AS episode,
                    'resolved' AS state,
                    look.as_of AS at,
                    known.fired_at AS fired_at,
                    look.features AS features,
                    look.version AS version,
                    look.served_at AS served_at
                  )
                )
              ) AS changes
            )
          ELSE known
        END,
        known -> known.changes
      )
    ) AS change
  FROM concerned
)
SELECT
  alert,
  '${view}' AS view,
  key,
  change.episode,
  change.state,
  change.at,
  change.fired_at,
  change.features,
  change.version,
  change.served_at,
  CAST(:look AS BIGINT) AS look
FROM changed
