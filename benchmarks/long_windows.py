"""What a recompute of 30 days costs by minutes, and by hours where maintenance has added them up.

    generated events ──append──► 31 days of minute buckets ──maintenance──► hours
    both statements at one as_of ──► equal to DuckDB's count ──► seconds, rows and files read

Every feature of every key, by either statement, is compared with DuckDB's count of the generated
events before a time is printed. `--write` puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import duckdb
import tick
from pyspark.sql import DataFrame

from tidemill.config.pipeline_file import load
from tidemill.config.settings import Place
from tidemill.lake.catalog import Lake
from tidemill.lake.open import open_for_writing
from tidemill.lake.session.session import session
from tidemill.pipeline.gold.changes import changes_by_recompute
from tidemill.pipeline.silver import hour_buckets, minute_buckets
from tidemill.pipeline.steps import feature_step

AS_OF = datetime(2026, 11, 21, 10, 17, tzinfo=timezone.utc)
DAYS = 31
WINDOWS = {"30d": 43200, "7d": 10080, "1d": 1440, "1h": 60}
COLUMNS = [f"count_{window}" for window in WINDOWS]


def write_events(path: Path, events: int, keys: int) -> None:
    """Write events of 31 days, spread evenly; the first keys have most of them."""
    first = int((AS_OF - timedelta(days=DAYS)).timestamp())
    duckdb.sql(
        f"""
        COPY (
          SELECT
            'p' || floor({keys} * (hash(i) / 2**64) ** 2)::BIGINT AS profile_id,
            make_timestamptz(
              ({first} + floor(hash(i + {events}) / 2**64 * {DAYS * 86400}))::BIGINT * 1000000
            ) AS event_timestamp
          FROM range({events}) AS numbers(i)
        ) TO '{path}'
        """
    )


def open_lake(folder: Path) -> Lake:
    view = {
        "name": "engagement",
        "keys": ["profile_id"],
        "event_time": "event_timestamp",
        "schema": {"profile_id": "string"},
        "features": [{"count": {}, "over": list(WINDOWS)}],
    }
    definition = load("engagement").overridden({"views": [view]})
    return open_for_writing(session(), Place(folder / "lake"), definition)


def wrong_keys(found_rows: DataFrame, events: Path) -> int:
    """Count the keys whose features are not what DuckDB counts straight from the events."""
    found = found_rows.select("profile_id", *COLUMNS).toArrow()  # noqa: F841 (DuckDB reads it)
    counts = ", ".join(
        f"count(*) FILTER (event_timestamp >= as_of - INTERVAL {minutes} MINUTE "
        f"AND event_timestamp < as_of) AS count_{window}"
        for window, minutes in WINDOWS.items()
    )
    different = " OR ".join(f"coalesce(f.{c}, 0) <> coalesce(w.{c}, 0)" for c in COLUMNS)
    (row,) = duckdb.sql(
        f"""
        WITH wanted AS (
          SELECT profile_id, {counts}
          FROM (SELECT *, TIMESTAMPTZ '{AS_OF.isoformat()}' AS as_of FROM '{events}')
          GROUP BY profile_id
        )
        SELECT count(*) FROM found AS f FULL JOIN wanted AS w USING (profile_id) WHERE {different}
        """
    ).fetchall()
    return int(row[0])


def timed(frame: DataFrame) -> float:
    started = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return time.monotonic() - started


def measure(lake: Lake, events: Path, repeats: int) -> dict[str, dict[str, float]]:
    """Return, by minutes and by hours, the seconds of each repeat, and what one of them reads."""
    view = lake.pipeline.views[0]
    buckets = minute_buckets.bucketed(lake, view)
    there = hour_buckets.usable(lake, view, buckets.batch, buckets.commits)
    assert there is not None
    ways = {"minutes": None, "hours": there}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    found: dict[str, dict[str, float]] = {}
    for way, by_hours in ways.items():
        frame = changes_by_recompute(lake, view, AS_OF, buckets.batch, by_hours)
        if wrong := wrong_keys(frame, events):
            sys.exit(f"by {way}: {wrong} keys are not what DuckDB counts; no times")
        files = [f for f in frame.inputFiles() if "_buckets/" in f or "_hours/" in f]
        rows = lake.spark.read.parquet(*files).count()
        found[way] = {"files": len(files), "rows": rows}
    for repeat in range(repeats + 1):
        for way, by_hours in ways.items():
            took = timed(changes_by_recompute(lake, view, AS_OF, buckets.batch, by_hours))
            if repeat:  # the first is cold
                seconds[way].append(took)
    for way, each in seconds.items():
        found[way] |= {
            "median": statistics.median(each),
            "least": min(each),
            "most": max(each),
        }
    pairs = zip(seconds["minutes"], seconds["hours"], strict=True)
    found["ratio"] = {"median": statistics.median(before / after for before, after in pairs)}
    return found


def report(found: dict[str, dict[str, float]], events: int, keys: int, repeats: int) -> str:
    """Return what was measured, as Markdown."""
    minutes, by_hours = found["minutes"], found["hours"]
    form = "{median:.2f} s ({least:.2f} s to {most:.2f} s)"
    lines = [
        f"{events:,} events over {DAYS} days, {keys:,} keys, windows {', '.join(WINDOWS)}; "
        f"{repeats} warm repeats of query and diff, as_of 17 minutes past the hour.",
        "",
        tick.machine(),
        "",
        "| | by minutes | by hours | ratio |",
        "|---|---:|---:|---:|",
        f"| query and diff | {form.format(**minutes)} | {form.format(**by_hours)} "
        f"| {found['ratio']['median']:.1f}x |",
        *(
            f"| {told} | {minutes[name]:,.0f} | {by_hours[name]:,.0f} "
            f"| {minutes[name] / by_hours[name]:.1f}x |"
            for name, told in (("files", "files read"), ("rows", "rows in them"))
        ),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--events", type=int, default=3_000_000)
    options.add_argument("--keys", type=int, default=500)
    options.add_argument("--repeats", type=int, default=5, help="warm repeats, 5 or more")
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    asked = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tidemill-long-"))
    try:
        write_events(events := folder / "events.parquet", asked.events, asked.keys)
        lake = open_lake(folder)
        frame = lake.spark.read.parquet(str(events))
        feature_step.append_batch(frame, 0, lake=lake)
        started = time.monotonic()
        rows = hour_buckets.bring_up(lake, lake.pipeline.views[0])
        seconds = time.monotonic() - started
        found = measure(lake, events, asked.repeats)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("both are equal to DuckDB's count\n")
    table = report(found, asked.events, asked.keys, asked.repeats)
    table += (
        f"\nThe first maintenance of these hours took {seconds:.1f} s and wrote {rows:,} rows.\n"
    )
    print(table)
    if asked.write:
        tick.write(table, "long windows")


if __name__ == "__main__":
    main()
