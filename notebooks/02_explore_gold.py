# Databricks notebook source
# MAGIC %md
# MAGIC # Explore the gold table
# MAGIC How windows decay when nothing comes, which titles are trending, and when each is watched.
# MAGIC
# MAGIC Runs as a notebook, and as a script:
# MAGIC `TIDEMILL_ROOT=tidemill-demo python notebooks/02_explore_gold.py`; see 01_tour for Databricks.

# COMMAND ----------

import tidemill

lake = tidemill.open_lake()  # in the notebook's own session, else in a local one
status = lake.status("engagement")  # what gold's own ledger says
known = {"as_of": status.as_of, "batch": status.batch}
files = lake.duckdb("engagement_buckets", "engagement_features")  # without Spark

# COMMAND ----------

# MAGIC %md
# MAGIC ## Windows decay
# MAGIC A feature of the last hour at `T` counts `[T - 1 h, T)`. If no event came any more, what leaves
# MAGIC the windows is known already: it is in the buckets.

# COMMAND ----------

key = lake.features("engagement").orderBy("view_count_1d", ascending=False).first()
decay = lake.sql(
    """
    WITH moments AS (
      SELECT half / 2 AS hours_later
      FROM (SELECT explode(sequence(0, 50)) AS half)
    ),
    views AS (
      SELECT (unix_seconds(:as_of) - unix_seconds(bucket_start)) / 3600 AS age, view_count
      FROM engagement_buckets
      WHERE profile_id = :profile_id AND gti = :gti AND batch <= :batch
        AND bucket_start >= :as_of - INTERVAL '24' HOUR AND bucket_start < :as_of
    )
    SELECT
      hours_later,
      coalesce(sum(view_count) FILTER (WHERE age <= 24 - hours_later), 0) AS views_1d,
      coalesce(sum(view_count) FILTER (WHERE age <= 12 - hours_later), 0) AS views_12h,
      coalesce(sum(view_count) FILTER (WHERE age <= 1 - hours_later), 0) AS views_1h
    FROM moments
    CROSS JOIN views
    GROUP BY hours_later
    ORDER BY hours_later
    """,
    {**known, "profile_id": key.profile_id, "gti": key.gti},
).collect()

# COMMAND ----------

tidemill.show(
    tidemill.chart(
        ["hours_later", "views_1d", "views_12h", "views_1h"],
        decay,
        title=f"{key.profile_id} / {key.gti}: what is left if nothing more comes",
        labels={
            "hours_later": "hours after as_of",
            "views_1d": "last 24 hours",
            "views_12h": "last 12 hours",
            "views_1h": "last hour",
            "value": "views in the window",
        },
    ),
    "02_decay",
)

# COMMAND ----------

# MAGIC %md The lines begin at gold's values; every point is counted again by DuckDB, window by window.

# COMMAND ----------

assert tuple(decay[0])[1:] == (key.view_count_1d, key.view_count_12h, key.view_count_1h)
assert tuple(decay[-1])[1:] == (0, 0, 0)
counted = files.execute(
    """
    SELECT half / 2, window_hours, coalesce(sum(view_count), 0)::BIGINT
    FROM range(51) AS moments (half)
    CROSS JOIN (VALUES (24), (12), (1)) AS windows (window_hours)
    LEFT JOIN engagement_buckets
      ON bucket_start >= $as_of + to_minutes(30 * half) - to_hours(window_hours)
      AND bucket_start < $as_of + to_minutes(30 * half)
      AND bucket_start < $as_of AND batch <= $batch
      AND profile_id = $profile_id AND gti = $gti
    GROUP BY ALL
    ORDER BY 1, 2 DESC
    """,
    {**known, "profile_id": key.profile_id, "gti": key.gti},
)
assert [value for _, _, value in counted.fetchall()] == [n for row in decay for n in row[1:]]

# COMMAND ----------

# MAGIC %md
# MAGIC ## Trending titles
# MAGIC A question of `sql/adhoc`: the last hour's views over the mean hour of the last 24.

# COMMAND ----------

trending = lake.query("trending").limit(10).collect()
tidemill.show(
    tidemill.chart(
        ["gti", "views_1h", "views_1d", "lift"],
        trending,
        y="lift",
        title="Titles watched more than usual in the last hour",
        labels={"gti": "title", "lift": "views of the last hour / mean hour of the day"},
    ),
    "02_trending",
)

# COMMAND ----------

counted = files.execute(
    """
    SELECT gti, sum(view_count_1h)::BIGINT AS views_1h, sum(view_count_1d)::BIGINT AS views_1d
    FROM engagement_features
    GROUP BY gti
    HAVING views_1h >= 2
    ORDER BY views_1h / views_1d DESC, views_1h DESC, gti
    """
).fetchall()
assert {row[:3] for row in trending} <= set(counted)
assert len(trending) == min(10, len(counted))
assert all(abs(row.lift - 24 * row.views_1h / row.views_1d) < 0.01 for row in trending)

# COMMAND ----------

# MAGIC %md
# MAGIC ## When is each title watched?
# MAGIC Events of all types in the last 24 hours, of the titles with the most.

# COMMAND ----------

heat = lake.sql(
    """
    WITH hours AS (
      SELECT
        gti,
        hour(bucket_hour) AS hour_utc,
        sum(select_count + highlight_count + view_count) AS events
      FROM engagement_buckets
      WHERE bucket_start >= :as_of - INTERVAL '24' HOUR AND bucket_start < :as_of
        AND batch <= :batch
      GROUP BY ALL
    ),
    ranked AS (
      SELECT
        *,
        dense_rank() OVER (ORDER BY total DESC, gti) AS place
      FROM (SELECT *, sum(events) OVER (PARTITION BY gti) AS total FROM hours)
    )
    SELECT hour_utc, gti, events
    FROM ranked
    WHERE place <= 12
    ORDER BY place, hour_utc
    """,
    known,
).collect()

# COMMAND ----------

tidemill.show(
    tidemill.chart(
        ["hour_utc", "gti", "events"],
        heat,
        kind="heat",
        title="Events of the last 24 hours",
        labels={"hour_utc": "hour of the day (UTC)", "gti": "title", "events": "events an hour"},
    ),
    "02_heat",
)

# COMMAND ----------

counted = files.execute(
    """
    SELECT gti, date_part('hour', bucket_start), sum(select_count + highlight_count + view_count)
    FROM engagement_buckets
    WHERE bucket_start >= $as_of - INTERVAL 24 HOUR AND bucket_start < $as_of AND batch <= $batch
    GROUP BY ALL
    """,
    known,
)
by_cell = {(gti, hour): int(events) for gti, hour, events in counted.fetchall()}
shown = {row.gti for row in heat}
assert {cell: n for cell, n in by_cell.items() if cell[0] in shown} == {
    (row.gti, row.hour_utc): row.events for row in heat
}
