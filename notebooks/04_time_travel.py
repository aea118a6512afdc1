# Databricks notebook source
# MAGIC %md
# MAGIC # Time travel
# MAGIC Every commit of gold says in its ledger what it holds: the buckets with `batch <= b`, at `as_of`.
# MAGIC So any version can be computed again from the buckets, and must come out the same.
# MAGIC
# MAGIC Runs as a notebook, and as a script:
# MAGIC `TIDEMILL_ROOT=tidemill-demo python notebooks/04_time_travel.py`; see 01_tour for Databricks.

# COMMAND ----------

import tidemill

lake = tidemill.open_lake()  # in the notebook's own session, else in a local one
view = lake.view("engagement")

# COMMAND ----------

# MAGIC %md The newest versions that a refresh committed, oldest first, each with its ledger.

# COMMAND ----------

NEWEST = 12
versions = lake.history("engagement")[:NEWEST][::-1]
for gold in versions:
    print(gold.version, {word: gold.ledger[word] for word in ("batch", "as_of", "mode")})

# COMMAND ----------

# MAGIC %md
# MAGIC ## The same rows
# MAGIC `reconcile` compares a version with the recompute at its ledger, key by key and feature by feature.

# COMMAND ----------

for gold in versions:
    found = lake.reconcile("engagement", gold.version)
    print("version {gold_version}: {keys} keys, {different} different".format(**found))
    assert found["different"] == 0

# COMMAND ----------

# MAGIC %md
# MAGIC ## The same sums
# MAGIC The views of the last day over all keys: from each version of gold (Delta's time travel), and from
# MAGIC the statement that defines the features, run on the buckets of today.

# COMMAND ----------


def views_of(rows):
    """Return the views of the last day over all keys."""
    return rows.agg({"view_count_1d": "sum"}).first()[0]


told = [{"as_of": gold.as_of, "batch": gold.batch} for gold in versions]
defined = tidemill.statement("features", view)
kept = [views_of(lake.table("engagement_features", gold.version)) for gold in versions]
computed = [views_of(lake.sql(defined, values)) for values in told]
assert kept == computed

# COMMAND ----------

tidemill.show(
    tidemill.chart(
        ["version", "kept", "computed"],
        [(str(v.version), *sums) for v, *sums in zip(versions, kept, computed, strict=True)],
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

files = lake.duckdb("engagement_buckets")
counted = [
    files.execute(
        """
        SELECT sum(view_count)::BIGINT
        FROM engagement_buckets
        WHERE bucket_start >= $as_of - INTERVAL 1 DAY AND bucket_start < $as_of
          AND batch <= $batch
        """,
        values,
    ).fetchone()[0]
    for values in told
]
assert counted == kept

# COMMAND ----------

# MAGIC %md
# MAGIC ## Gold as of a time
# MAGIC `features` takes a time: the version with the latest `as_of` at or before it, as readers had it then.

# COMMAND ----------

middle = versions[len(versions) // 2]
then = lake.features("engagement", at=middle.as_of)
newest = max(gold.version for gold in versions if gold.as_of == middle.as_of)
assert then.exceptAll(lake.table("engagement_features", newest)).isEmpty()
print(f"at {middle.as_of:%Y-%m-%d %H:%M} UTC: {then.count()} keys")
