# Databricks notebook source
# MAGIC %md
# MAGIC # A tour of a lake
# MAGIC Freshness, the most viewed titles, one statement, and whether every feature is right.
# MAGIC
# MAGIC Runs as a notebook, and as a script: `TIDEMILL_ROOT=tidemill-demo python notebooks/01_tour.py`.
# MAGIC On Databricks put `%pip install` of the wheel with its extras `plots` and `notebooks` into a
# MAGIC cell above this one, and name the lake by TIDEMILL_CATALOG and TIDEMILL_SCHEMA.

# COMMAND ----------

import tidemill

# COMMAND ----------

# MAGIC %md The lake that TIDEMILL_ROOT names (or TIDEMILL_CATALOG and TIDEMILL_SCHEMA).

# COMMAND ----------

lake = tidemill.open_lake()  # in the notebook's own session, else in a local one
status = lake.status("engagement")  # what gold's own ledger says: as_of and batch

# COMMAND ----------

lake.table("engagement_status").drop("generation").show(truncate=False)

# COMMAND ----------

# MAGIC %md The most viewed titles: a question of `sql/adhoc`, as it runs in any SQL editor.

# COMMAND ----------

titles = lake.query("top_titles").limit(10)
titles.show()

# COMMAND ----------

top = titles.select("gti", "views_1h", "views_1d").collect()
tidemill.show(
    tidemill.chart(
        ["gti", "views_1h", "views_1d"],
        top,
        title=f"The titles viewed most in the hour before {status.as_of:%Y-%m-%d %H:%M} UTC",
        labels={
            "gti": "title",
            "views_1h": "last hour",
            "views_1d": "last 24 hours",
            "value": "views",
        },
    ),
    "01_top_titles",
)

# COMMAND ----------

# MAGIC %md DuckDB counts the same bars from the files of the minute buckets, without Spark.

# COMMAND ----------

counted = lake.duckdb("engagement_buckets").execute(
    """
    SELECT
      gti,
      coalesce(sum(view_count) FILTER (bucket_start >= $as_of - INTERVAL 1 HOUR), 0)::BIGINT,
      sum(view_count)::BIGINT
    FROM engagement_buckets
    WHERE bucket_start >= $as_of - INTERVAL 24 HOUR AND bucket_start < $as_of AND batch <= $batch
    GROUP BY gti
    ORDER BY 2 DESC, 3 DESC, 1
    LIMIT 10
    """,
    {"as_of": status.as_of, "batch": status.batch},
)
assert counted.fetchall() == [tuple(row) for row in top]

# COMMAND ----------

lake.table("engagement_current").orderBy(
    "view_count_1h", "profile_id", "gti", ascending=[0, 1, 1]
).show(5, vertical=True)

# COMMAND ----------

print(tidemill.statement("features", lake.view("engagement")))

# COMMAND ----------

found = lake.reconcile("engagement")
print("as_of {as_of}: {keys} keys, {different} different from the recompute".format(**found))
assert found["different"] == 0
