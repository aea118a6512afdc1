# Databricks notebook source
# MAGIC %md
# MAGIC # A tour of a lake
# MAGIC Freshness, the most viewed titles, one statement, and whether every feature is right.
# MAGIC Runs as a notebook, and as a script: `TIDEMILL_ROOT=tidemill-demo python notebooks/01_tour.py`.

# COMMAND ----------

from tidemill import lake as lakes
from tidemill.features.definition import load
from tidemill.reconcile import reconcile
from tidemill.session import session
from tidemill.settings import Place
from tidemill.statements import statement

spark = session()  # the notebook's own, else a local one

# COMMAND ----------

# MAGIC %md The lake that TIDEMILL_ROOT names (or TIDEMILL_CATALOG and TIDEMILL_SCHEMA).

# COMMAND ----------

lake = lakes.open_for_reading(spark, Place.resolve(), load("engagement"))
view = lake.pipeline.view("engagement")

# COMMAND ----------

spark.table("engagement_status").drop("generation").show(truncate=False)

# COMMAND ----------

spark.sql(statement("top_titles", view)).show()

# COMMAND ----------

spark.table("engagement_current").orderBy(
    "view_count_1h", "profile_id", "gti", ascending=[0, 1, 1]
).show(5, vertical=True)

# COMMAND ----------

print(statement("features", view))

# COMMAND ----------

found = reconcile(lake, view)
print(f"as_of {found.as_of}: {found.keys} keys, {found.different} different from the recompute")
