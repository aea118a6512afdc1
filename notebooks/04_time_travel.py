# Databricks notebook source
# MAGIC %md
# MAGIC # Time travel
# MAGIC Every commit of gold says in its ledger what it holds: the buckets with `batch <= b`, at `as_of`.
# MAGIC So any version can be computed again from the buckets, and must come out the same.
# MAGIC
# MAGIC Runs as a notebook, and as a script:
# MAGIC `TIDEMILL_ROOT=tidemill-demo python notebooks/04_time_travel.py`; see 01_tour for Databricks.

# COMMAND ----------

from tidemill.config.pipeline_file import load
from tidemill.config.settings import Place
from tidemill.lake.commits import ledger
from tidemill.lake.open import open_for_reading
from tidemill.lake.session.session import session
from tidemill.lake.statements import statement
from tidemill.operations.reconcile import reconcile
from tidemill.query import duckdb_tables
from tidemill.query.charts import chart, show

spark = session()  # the notebook's own, else a local one
lake = open_for_reading(spark, Place.resolve(), load("engagement"))
view = lake.pipeline.view("engagement")

# COMMAND ----------

# MAGIC %md The newest versions that a refresh committed, oldest first, each with its ledger.

# COMMAND ----------

NEWEST = 12
commits = [c for c in lake.commits("engagement_features", None) if c.ledger][:NEWEST][::-1]
for commit in commits:
    print(commit.version, {word: commit.ledger[word] for word in ("batch", "as_of", "mode")})

# COMMAND ----------

# MAGIC %md
# MAGIC ## The same rows
# MAGIC `reconcile` compares a version with the recompute at its ledger, key by key and feature by feature.

# COMMAND ----------

compared = [reconcile(lake, view, commit.version) for commit in commits]
for found in compared:
    print(
        f"version {found.gold_version}: {found.keys} keys, {found.different} different "
        f"from the recompute at {found.as_of}, batch {found.batch}"
    )
assert not any(found.different for found in compared)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The same sums
# MAGIC The views of the last day over all keys: from each version of gold (Delta's time travel), and from
# MAGIC the statement that defines the features, run on the buckets of today.

# COMMAND ----------

told = [(c.version, ledger.instant(c.ledger["as_of"]), c.ledger["batch"]) for c in commits]
kept = [
    spark.read.option("versionAsOf", version)
    .table("engagement_features")
    .agg({"view_count_1d": "sum"})
    .first()[0]
    for version, _, _ in told
]
computed = [
    spark.sql(statement("features", view), args={"as_of": as_of, "batch": batch})
    .agg({"view_count_1d": "sum"})
    .first()[0]
    for _, as_of, batch in told
]
assert kept == computed

# COMMAND ----------

show(
    chart(
        ["version", "kept", "computed"],
        [(str(v), was, now) for (v, _, _), was, now in zip(told, kept, computed, strict=True)],
        title="Views of the last day, over all keys, by version of gold",
        labels={
            "version": "version of gold",
            "kept": "as gold kept it",
            "computed": "recomputed from the buckets",
            "value": "views in the last 24 hours",
        },
    ),
    "04_versions",
)

# COMMAND ----------

# MAGIC %md DuckDB counts them from the files of the buckets.

# COMMAND ----------

files = duckdb_tables.connect(lake, "engagement_buckets")
counted = [
    files.execute(
        """
        SELECT sum(view_count)::BIGINT
        FROM engagement_buckets
        WHERE bucket_start >= $as_of - INTERVAL 1 DAY AND bucket_start < $as_of
          AND batch <= $batch
        """,
        {"as_of": as_of, "batch": batch},
    ).fetchone()[0]
    for _, as_of, batch in told
]
assert counted == kept
