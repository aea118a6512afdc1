# Databricks notebook source
# MAGIC %md
# MAGIC # What each tick costs
# MAGIC What a refresh took in, what it changed in gold, what the MERGE wrote for that, and the seconds.
# MAGIC
# MAGIC Runs as a notebook, and as a script: `TIDEMILL_ROOT=tidemill-demo python notebooks/05_cost.py`;
# MAGIC see 01_tour for Databricks.

# COMMAND ----------

import tidemill

lake = tidemill.open_lake()  # in the notebook's own session, else in a local one

# COMMAND ----------

# MAGIC %md
# MAGIC ## Read and written
# MAGIC `tidemill_batches` keeps what the tables' own ledgers say. The newest refreshes, by gold's version.

# COMMAND ----------

NEWEST = 12
ticks = lake.sql(
    """
    SELECT
      CAST(version AS STRING) AS version,
      coalesce(events, 0) AS events,
      coalesce(buckets, 0) AS buckets,
      keys_changed,
      told.from_batch,
      told.batch,
      told.mode,
      seconds
    FROM (
      SELECT *, from_json(ledger, 'from_batch BIGINT, batch BIGINT, mode STRING') AS told
      FROM tidemill_batches
      WHERE view = 'engagement'
      ORDER BY tidemill_batches.version DESC
      LIMIT :newest
    ) AS newest
    ORDER BY newest.version
    """,
    {"newest": NEWEST},
)
ticks.drop("seconds").show()
rows = ticks.collect()

# COMMAND ----------

tidemill.show(
    tidemill.chart(
        ["version", "events", "buckets", "keys_changed"],
        ticks.select("version", "events", "buckets", "keys_changed").collect(),
        title="What each refresh took in, and what it changed",
        labels={
            "version": "version of gold",
            "events": "events taken in",
            "buckets": "bucket rows appended",
            "keys_changed": "rows of gold changed",
            "value": "rows",
        },
    ),
    "05_rows",
)

# COMMAND ----------

# MAGIC %md DuckDB counts the bars: bucket rows and their events, and the changed rows in gold's change feed.

# COMMAND ----------

files = lake.duckdb("engagement_buckets")
files.register("feed", lake.changes("engagement_features", int(rows[0].version)))
for row in rows:
    appended = files.execute(
        """
        SELECT count(*), coalesce(sum(select_count + highlight_count + view_count), 0)::BIGINT
        FROM engagement_buckets
        WHERE batch > $from_batch AND batch <= $batch
        """,
        {"from_batch": row.from_batch, "batch": row.batch},
    ).fetchone()
    changed = files.execute(
        """
        SELECT count(*)
        FROM feed
        WHERE _commit_version = $version AND _change_type <> 'update_preimage'
        """,
        {"version": int(row.version)},
    ).fetchone()
    assert (*appended, *changed) == (row.buckets, row.events, row.keys_changed), row

# COMMAND ----------

# MAGIC %md
# MAGIC ## Rewritten
# MAGIC Gold is copy-on-write: a file with one changed row is written again. The MERGE's own numbers.

# COMMAND ----------

commits = {str(one.version): one.metrics for one in lake.history("engagement")}
written = [
    (row.version, row.keys_changed, int(commits[row.version]["numTargetRowsCopied"]))
    for row in rows
]
tidemill.show(
    tidemill.chart(
        ["version", "changed", "copied"],
        written,
        title="Rows that each MERGE wrote",
        labels={
            "version": "version of gold",
            "changed": "changed",
            "copied": "copied unchanged",
            "value": "rows of gold",
        },
    ),
    "05_written",
)

# COMMAND ----------

# MAGIC %md Changed and copied rows together are gold as it stands after the newest MERGE.

# COMMAND ----------

files = lake.duckdb("engagement_features")
standing = files.execute("SELECT count(*) FROM engagement_features").fetchone()[0]
assert all(changed + copied <= standing for _, changed, copied in written)
for version, changed, copied in written:
    print(f"version {version}: {changed} rows changed, {copied} copied")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Seconds
# MAGIC Of this machine, by step. The first refresh of a session is several times slower.

# COMMAND ----------

seconds = ticks.selectExpr("version", "explode(seconds) AS (step, seconds)").collect()
tidemill.show(
    tidemill.chart(
        ["version", "step", "seconds"],
        seconds,
        color="step",
        title="Seconds of each refresh, by step",
        labels={"version": "version of gold"},
    ),
    "05_seconds",
)
