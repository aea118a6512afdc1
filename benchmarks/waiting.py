"""What a user waits for: commands as processes, from the shell to the answer, beside a bare Spark.

    bare start    a session with Delta from its packages, range(10).count()
    bare append   the same, then one Delta table read and appended to
    commands      query, describe, reconcile, run --once with 2,000 new events and with none ...

All take turns, so a slow minute is everybody's. The lake is small: some hours of the generator's
events in files, brought to gold. Answers are looked at before any time counts: the count of a query
is DuckDB's over the same files. `--write` puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

from deltalake import DeltaTable
from measuring import machine, say, spread, temporary, write

SESSION = """
from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession
builder = (SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog",
            "org.apache.spark.sql.delta.catalog.DeltaCatalog"))
spark = configure_spark_with_delta_pip(builder).getOrCreate()
"""
BARE = SESSION + "assert spark.range(10).count() == 10"
APPEND = (
    SESSION
    + """
rows = spark.read.format("delta").load({table!r})
rows.limit(2000).write.format("delta").mode("append").save({table!r})
"""
)
EVENTS, KEYS = 2_000, 1_000
START = datetime(2026, 11, 21, 8, tzinfo=timezone.utc)


def events(batch: int) -> str:
    """Return a file of events: a tenth of their keys is new in each batch."""
    lines = []
    for number in range(EVENTS):
        at = START + timedelta(minutes=5 * batch, milliseconds=150 * number)
        new = number % 10 == 0
        who = f"n{batch}-{number}" if new else f"p{number % KEYS}"
        event = {
            "event_id": f"e{batch}-{number}",
            "profile_id": who,
            "gti": f"t{number % 20}",
            "event_type": ("view", "select", "highlight")[number % 3],
            "event_timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z",
        }
        lines.append(json.dumps(event))
    return "\n".join(lines) + "\n"


def ran(*command: str) -> tuple[float, str]:
    """Run a command; return its seconds, and what it printed."""
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"{' '.join(command)[:200]}: {done.stderr[-1000:]}")
    return seconds, done.stdout


def tidemill(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tidemill.cli", *words)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    asked = options.parse_args()
    with temporary("waiting") as folder:
        measure(folder, asked.repeats, asked.write)


def measure(folder: Path, repeats: int, into_page: bool) -> None:
    root, source, bare = folder / "lake", folder / "input", folder / "bare"
    source.mkdir()
    lake = ("--root", str(root))
    run = tidemill(
        *("run", "engagement", "--source", "files", "--input", str(source), "--once", "--json"),
        *lake,
    )
    for batch in range(4):
        (source / f"{batch}.json").write_text(events(batch))
    ran(*run)
    count = "SELECT count(*) AS n FROM engagement_features"
    expected = DeltaTable(str(root / "engagement_features")).to_pyarrow_table().num_rows
    _, printed = ran(*tidemill("query", count, "--json", *lake))
    if json.loads(printed)["rows"] != [[expected]]:
        sys.exit(f"{printed} is not the {expected} rows of the files; no times")
    ran(
        sys.executable,
        "-c",
        SESSION + f"spark.range(5000).write.format('delta').save({str(bare)!r})",
    )
    commands = {
        "a bare session and a count": (sys.executable, "-c", BARE),
        "a bare session, a table read and appended to": (
            *(sys.executable, "-c"),
            APPEND.format(table=str(bare)),
        ),
        '`query "SELECT count(*) ..."`': tidemill("query", count, "--json", *lake),
        "`query --file trending`": tidemill("query", "--file", "trending", "--json", *lake),
        "the same, `--engine spark`": tidemill(
            *("query", "--file", "trending", "--json", "--engine", "spark"), *lake
        ),
        "`describe engagement`": tidemill("describe", "engagement", "--json", *lake),
        "`explain engagement p1 t1`": tidemill(
            "explain", "engagement", "p1", "t1", "--json", *lake
        ),
        "`reconcile engagement`": tidemill("reconcile", "engagement", "--json", *lake),
        "the same, `--from events`": tidemill(
            *("reconcile", "engagement", "--from", "events", "--json"), *lake
        ),
        "`quarantine list engagement`": tidemill("quarantine", "list", "engagement", *lake),
        "`maintain engagement --dry-run`": tidemill("maintain", "engagement", "--dry-run", *lake),
        "`report engagement`": tidemill(
            *("report", "engagement", "--output", str(folder / "report.html")), *lake
        ),
        f"`run --once`, {EVENTS:,} new events": run,
        "`run --once`, nothing new": run,
    }
    seconds: dict[str, list[float]] = {what: [] for what in commands}
    for turn in range(repeats):
        (source / f"{10 + turn}.json").write_text(events(10 + turn))
        for what, command in commands.items():
            seconds[what].append(ran(*command)[0])
        say(f"turn {turn + 1} of {repeats}")
    base, append = (statistics.median(each) for each in list(seconds.values())[:2])
    lines = [
        f"| {what} | {spread(each, '{:.1f} s')} | {statistics.median(each) / base:.2f}x | "
        f"{statistics.median(each) / append:.2f}x |"
        for what, each in seconds.items()
    ]
    text = "\n".join(
        [
            f"Processes, from the start to the end; median of {repeats}, in turns. "
            f"{4 * EVENTS:,} events in the lake before, 10 % of the keys of each batch new.",
            "",
            machine(),
            "",
            "| what | took | to a bare session | to a bare append |",
            "|---|---:|---:|---:|",
            *lines,
            "",
        ]
    )
    print(text)
    if into_page:
        write(text, "waiting")


if __name__ == "__main__":
    main()
