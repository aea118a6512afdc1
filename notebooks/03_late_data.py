# Databricks notebook source
# MAGIC %md
# MAGIC # Late data
# MAGIC A phone is offline from 06:20 to 08:00 and sends its events at noon. They are counted where they
# MAGIC belong, in every window they are in, and nothing else moves.
# MAGIC
# MAGIC Makes a small lake of its own in a temporary folder, removed at the end; yours is not touched.
# MAGIC Runs as a notebook, and as a script: `python notebooks/03_late_data.py`. On Databricks it needs a
# MAGIC cluster of one user with the local catalog, as its lake is a folder.

# COMMAND ----------

import json
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import tidemill

# COMMAND ----------

# MAGIC %md A profile views a title every seven minutes until noon. A hundred minutes of it come late.

# COMMAND ----------

DAY = datetime(2026, 11, 21, tzinfo=timezone.utc)
OFFLINE = (DAY + timedelta(hours=6, minutes=20), DAY + timedelta(hours=8))
TIMES = [DAY + timedelta(minutes=minute) for minute in range(0, 12 * 60, 7)]
events = [
    {
        "event_id": f"e{number}",
        "profile_id": "profile-1",
        "gti": "title-1",
        "event_type": "view",
        "event_timestamp": time.isoformat(),
    }
    for number, time in enumerate(TIMES)
]
late = [e for e, time in zip(events, TIMES, strict=True) if OFFLINE[0] <= time < OFFLINE[1]]
on_time = [event for event in events if event not in late]

# COMMAND ----------

folder = tempfile.TemporaryDirectory(prefix="tidemill-late-")
arriving, root = Path(folder.name) / "arriving", Path(folder.name) / "lake"
arriving.mkdir()
clock = tidemill.Clock(DAY + timedelta(hours=13))
of_files = {"source": {"kind": "files", "input": str(arriving)}}
engagement = tidemill.load("engagement").overridden(of_files)


def arrive(name: str, records: list[dict]) -> None:
    """Put a file of events into the folder, and run the pipeline over it, once."""
    (arriving / name).write_text("".join(f"{json.dumps(record)}\n" for record in records))
    with tidemill.open_lake(root, pipeline=engagement, clock=clock, write=True) as lake:
        lake.run_once()


# COMMAND ----------

# MAGIC %md First what came in time; then the phone is online again.

# COMMAND ----------

arrive("1-in-time.jsonl", on_time)
lake = tidemill.open_lake(root, pipeline=engagement)
before = lake.features("engagement").collect()
arrive("2-late.jsonl", late)
after = lake.features("engagement").collect()
for gold in reversed(lake.history("engagement")):
    told = {word: gold.ledger[word] for word in ("batch", "as_of", "mode", "changed")}
    print(f"version {gold.version}: {told}")

# COMMAND ----------

# MAGIC %md
# MAGIC ## The past is repaired
# MAGIC The late events stand in the minutes in which they happened, as rows of a later batch. No row was
# MAGIC changed for that: buckets are append only.

# COMMAND ----------

buckets = lake.sql(
    """
    SELECT
      date_format(bucket_hour, 'HH:mm') AS hour,
      CASE batch WHEN 0 THEN 'came in time' ELSE 'came late' END AS came,
      sum(view_count) AS views
    FROM engagement_buckets
    GROUP BY ALL
    ORDER BY hour, came
    """
).collect()
tidemill.show(
    tidemill.chart(
        ["hour", "came", "views"],
        buckets,
        color="came",
        title="Views by the hour in which they happened",
        labels={"hour": "hour of 21 November (UTC)", "views": "views an hour"},
    ),
    "03_buckets",
)

# COMMAND ----------

# MAGIC %md Counted again by DuckDB, from the files of the events.

# COMMAND ----------

counted = lake.duckdb("engagement_events").execute(
    """
    SELECT strftime(event_hour, '%H:%M'), batch > 0, count(*)
    FROM engagement_events
    WHERE event_type = 'view'
    GROUP BY ALL
    ORDER BY 1, 2
    """
)
assert counted.fetchall() == [(row.hour, row.came == "came late", row.views) for row in buckets]
assert sum(row.views for row in buckets) == len(events)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Before and after, in gold
# MAGIC The windows of 12 and 24 hours hold the time offline and gain its views. The last hour does not.

# COMMAND ----------

as_of = lake.status("engagement").as_of
WINDOWS = {"1h": "last hour", "12h": "last 12 hours", "1d": "last 24 hours"}
values = [
    (text, row[0][f"view_count_{window}"], new[0][f"view_count_{window}"])
    for window, text in WINDOWS.items()
    for row, new in [(before, after)]
]
tidemill.show(
    tidemill.chart(
        ["window", "before", "after"],
        values,
        title=f"profile-1 / title-1 at {as_of:%H:%M} UTC, before and after the late events",
        labels={
            "before": "before the late events",
            "after": "after them",
            "value": "views in the window",
        },
        kind="bar",
    ),
    "03_gold",
)

# COMMAND ----------

files = lake.duckdb("engagement_events")
for hours, (_, was, now) in zip((1, 12, 24), values, strict=True):
    counted = files.execute(
        """
        SELECT count(*) FILTER (batch = 0), count(*)
        FROM engagement_events
        WHERE event_timestamp >= $as_of - to_hours($hours) AND event_timestamp < $as_of
        """,
        {"as_of": as_of, "hours": hours},
    )
    assert counted.fetchone() == (was, now)

# COMMAND ----------

# MAGIC %md And gold is what a recompute says, before and after.

# COMMAND ----------

for gold in lake.history("engagement"):
    found = lake.reconcile("engagement", gold.version)
    print("version {gold_version}: {keys} key, {different} different".format(**found))
    assert found["different"] == 0

# COMMAND ----------

folder.cleanup()
