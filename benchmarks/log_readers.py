"""What it costs to read a log: the package's own reader of `_delta_log` beside `deltalake`.

    a table of N commits with ledgers, a checkpoint 10 commits ago
        own        lake.commits.ledger.of_log, newest_version
        deltalake  DeltaTable(path).history(limit), .version()
                   the same of a DeltaTable that is kept open, after update_incremental()

Both read the same log in turns; what they say of the newest commits is compared first. Starts are
processes of their own, cold in Python and warm in the file system. `--write` puts the table into
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from measuring import machine, say, spread, temporary, took, wish, write

from tidemill.lake.commits import ledger

RECENT = ledger.RECENT
LIMIT = 1.5  # times the own reader's, up to which the library takes its place
EACH = 10  # commits since the last checkpoint
STARTS = {
    "own": "from tidemill.lake.commits import ledger; from pathlib import Path; "
    "ledger.of_log(Path({log!r}))",
    "deltalake": "from deltalake import DeltaTable; DeltaTable({table!r}).history({recent})",
}


def make(table: Path, commits: int) -> None:
    """Make a table with so many commits, each with a ledger; the last ones are behind a checkpoint.

    The commits are written as files, and add no file to the table: a table that is kept small has a
    long log and few files.
    """
    write_deltalake(str(table), pa.table({"n": [1]}))
    for number in range(1, commits):
        fields = {"generation": "g", "batch": number}
        info = {
            "timestamp": 1_763_900_000_000 + 30_000 * number,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append"},
            "operationMetrics": {"numOutputRows": "1"},
            "userMetadata": json.dumps(fields),
        }
        name = table / "_delta_log" / f"{number:020}.json"
        name.write_text(json.dumps({"commitInfo": info}) + "\n")
        if number == commits - EACH:
            DeltaTable(str(table)).create_checkpoint()


def start(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def updated(table: DeltaTable) -> DeltaTable:
    """Return the open table as its log is now."""
    table.update_incremental()
    return table


def compare(table: Path) -> None:
    """Fail unless both say the same of the newest version and of the newest commits."""
    log = table / "_delta_log"
    read = DeltaTable(str(table))
    if ledger.newest_version(log) != read.version():
        sys.exit("the newest versions differ; no times")
    own = [
        (commit.version, commit.operation, commit.metrics, commit.ledger)
        for commit in ledger.of_log(log)
    ]
    theirs = [
        (
            each["version"],
            each["operation"],
            each["operationMetrics"],
            json.loads(each["userMetadata"]),
        )
        for each in read.history(RECENT)
    ]
    if own != theirs:
        sys.exit(f"the newest commits differ; no times: {own[0]} and {theirs[0]}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--commits", type=int, default=10_000)
    options.add_argument("--repeats", type=int, default=9)
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    asked = options.parse_args()
    with temporary("log-readers") as folder:
        table = folder / "table"
        make(table, asked.commits)
        compare(table)
        log, kept = table / "_delta_log", DeltaTable(str(table))
        calls: dict[str, dict[str, Callable[[], object]]] = {
            f"the newest {RECENT} commits": {
                "own": lambda: ledger.of_log(log),
                "deltalake": lambda: DeltaTable(str(table)).history(RECENT),
            },
            "the newest version": {
                "own": lambda: ledger.newest_version(log),
                "deltalake": lambda: DeltaTable(str(table)).version(),
            },
            f"the newest {RECENT} commits, the table kept open": {
                "own": lambda: ledger.of_log(log),
                "deltalake": lambda: updated(kept).history(RECENT),
            },
            "the newest version, the table kept open": {
                "own": lambda: ledger.newest_version(log),
                "deltalake": lambda: updated(kept).version(),
            },
            f"start of a process, and {RECENT} commits": {
                name: partial(start, code.format(log=str(log), table=str(table), recent=RECENT))
                for name, code in STARTS.items()
            },
        }
        lines = []
        for what, both in calls.items():
            seconds: dict[str, list[float]] = {name: [] for name in both}
            for _ in range(asked.repeats + 1):
                for name, call in both.items():
                    seconds[name].append(took(call))
            own, theirs = ([1000 * s for s in seconds[name][1:]] for name in both)
            ratio = statistics.median(theirs) / statistics.median(own)
            lines.append(
                f"| {what} | {spread(own, '{:.1f} ms')} | {spread(theirs, '{:.1f} ms')} | "
                f"{ratio:.1f}x |"
            )
            say(f"{what}: {wish(ratio, LIMIT)}")
    text = "\n".join(
        [
            f"A log of {asked.commits:,} commits, the last {EACH} behind a checkpoint; median of "
            f"{asked.repeats}, in turns.",
            "",
            machine(),
            "",
            "| read | own | `deltalake` | ratio |",
            "|---|---:|---:|---:|",
            *lines,
            "",
        ]
    )
    print(text)
    if asked.write:
        write(text, "log readers")


if __name__ == "__main__":
    main()
