"""A week of real ticks, a minute of events each, without a wait between them: does a lake stay as
small and as quick as it was on its second day?

    minute of events ──feature_batch──► buckets, gold ──► a line of JSON: seconds, files, memory
    hour of events ──maintenance──► hours, expiry, OPTIMIZE      day ──► VACUUM
    end ──► gold equal to its recompute and to DuckDB's count ──► last day / second day, picture

The program may be stopped at any time: the same command goes on where it was. `--report FILE` makes
table and picture of the lines written so far. On another machine, `--from TICK` begins with the
lake that the ticks before would have left: a batch of all events that still count there (see
week_pieces.py).

Files and logs go by the machine's clock, in which this week takes some hours. So that files are
kept for `--keep` days of event time, the tables' retention is set, once a day, to the time that
these took; declared are 7 days, of which a week could not show the end. The files of the logs are
given the age that they would have. `--keep 0` leaves both as they are.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import tick
from measuring import CURVES, cpu_seconds, machine, resident, say, temporary, tree, wish, write
from pyspark.sql import DataFrame

from tidemill.config.pipeline_file import load
from tidemill.config.settings import Clock, Place, iso
from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.open import open_for_writing
from tidemill.lake.session.session import session
from tidemill.operations import maintenance, reconcile
from tidemill.pipeline import queries, runner
from tidemill.pipeline.steps import feature_step
from tidemill.query import charts as plotting
from tidemill.sources.files.source import Files

HOUR, DAY = 60, 1440  # minutes
LATE, LATEST = 0.05, 180  # the share of late events, and minutes
RECORDS, AGES = "week.jsonl", "ages.json"
PARTS = 4  # of a run that is too short for whole days
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is run: ticks of `step` minutes from `first`, seconds since 1970, on; and how many days
    files and logs are kept."""

    ticks: int
    step: int
    events: int
    keys: int
    keep: float
    record: int
    first: int
    start: int = 0  # the first tick of this folder

    def counted_from(self, tick: int) -> int:
        """Return the first tick whose events may still count at `tick`."""
        return max(0, tick - (DAY + LATEST) // self.step - 2)


# -- events --------------------------------------------------------------------------------------


def events_of(plan: Plan, first: int, last: int) -> str:
    """Return DuckDB's SQL for the events of the ticks from `first` to before `last`; they come from
    hashes of their numbers. The first keys have most events; a few events are late."""
    draws = ", ".join(f"hash(i * 5 + {n}) / 2**64 AS u{n}" for n in range(5))
    return f"""
        WITH draws AS (
          SELECT i // {plan.events} AS tick, {draws}
          FROM range({first * plan.events}, {last * plan.events}) AS numbers(i)
        ), events AS (
          SELECT
            *,
            floor({plan.keys} * u1 * u1)::BIGINT AS key,
            floor((tick + u4) * {plan.step}) - (u3 < {LATE})::INT * floor(u2 * {LATEST}) AS minute
          FROM draws
        )
        SELECT
          {tick.NAMES},
          make_timestamptz(
            ({plan.first} + minute * 60 + floor(u2 * 60))::BIGINT * 1000000
          ) AS event_timestamp
        FROM events
    """


# -- ticks ---------------------------------------------------------------------------------------


@dataclass
class Week:
    """The open lake, and what maintenance needs to know of the time, which `ages` keeps for a run
    that is stopped."""

    lake: Lake
    plan: Plan
    recorder: runner.Recorder
    ages: Path
    seen: dict[str, int] = field(default_factory=dict)  # the minute of each file of the logs
    took: float = 0.0  # seconds of the day so far, up to the last maintenance
    went_on: float = field(default_factory=time.time)

    def recall(self) -> None:
        """Go on with the ages of a run that was stopped."""
        if self.ages.exists():
            self.seen, self.took = json.loads(self.ages.read_text(encoding="utf-8"))

    def keep(self) -> None:
        now = time.time()
        self.took, self.went_on = self.took + now - self.went_on, now
        self.ages.write_text(json.dumps([self.seen, self.took]), encoding="utf-8")

    def tick(self, number: int) -> dict[str, Any]:
        """Run the maintenance that is due, and one tick; return its record."""
        minute = number * self.plan.step
        found: dict[str, Any] = {"tick": number, "at": iso(self.at(minute))}
        if number and minute % HOUR < self.plan.step:
            self.recorder.record()  # as in a run, maintenance comes after the batches are recorded
            found["upkeep"] = self.maintain(minute)
            found["disk"] = {name: on_disk(folder) for name, folder in self.folders()}
        events = self.events(number, number + 1)
        started, used = time.monotonic(), cpu_seconds(tree())
        self.run(events, number)
        found["seconds"] = round(time.monotonic() - started, 3)
        found["cpu"] = round(cpu_seconds(tree()) - used, 3)
        if number % self.plan.record == 0:
            started = time.monotonic()
            self.recorder.record()
            found["recorded"] = round(time.monotonic() - started, 3)
        return {**found, **self.told()}

    def fill(self) -> None:
        """Make the lake that the ticks before the first one would have left, but for older
        versions, in one batch."""
        start = self.plan.start
        self.run(self.events(self.plan.counted_from(start), start), start - 1)

    def events(self, first: int, last: int) -> DataFrame:
        rows = duckdb.sql(events_of(self.plan, first, last)).to_arrow_table()
        return self.lake.spark.createDataFrame(rows)

    def run(self, events: DataFrame, batch: int) -> None:
        feature_step.feature_batch(events, batch, lake=self.lake, clock=Clock(), follows="event")

    def at(self, minute: int) -> datetime:
        return times.of_epoch(self.plan.first + minute * 60)

    def told(self) -> dict[str, Any]:
        """Return what gold says of the tick, the files and the memory."""
        commit = self.lake.commits(tick.GOLD, 1)[0]
        ledger_ = commit.ledger or {}
        all_, jvm = resident(tree())
        return {
            "mode": ledger_.get("mode"),
            "changed": ledger_.get("changed"),
            "steps": ledger_.get("seconds"),
            "merge": commit.metric("executionTimeMs") / 1000,
            "memory": round(all_),
            "jvm": round(jvm),
            "tables": {name: in_log(folder) for name, folder in self.folders()},
        }

    def folders(self) -> Iterator[tuple[str, Path]]:
        """Yield each table that anything was committed to since it was made, and its folder."""
        root = self.lake.place.root or Path()
        for log in sorted(root.glob("*/_delta_log")):
            if ledger.newest_version(log) > 0:
                yield log.parent.name, log.parent

    def maintain(self, minute: int) -> dict[str, float]:
        """Maintain the lake as a run does between batches: vacuum and tidy once a day, the rest
        once an hour; return the seconds by action."""
        daily = minute % DAY < self.plan.step
        if self.plan.keep:
            self.age_logs(minute)
            self.keep()
        if daily and self.plan.keep:
            self.set_retention()
        started = time.monotonic()
        actions = maintenance.ACTIONS if daily else maintenance.OFTEN
        if daily and self.plan.keep:
            actions = tuple(action for action in actions if action != "vacuum")
        steps = maintenance.plan(self.lake, Clock(self.at(minute)), actions)
        done = maintenance.maintain(self.lake, steps)
        seconds = dict(maintenance.row_of(self.lake, done).seconds)
        if daily and self.plan.keep:
            begun = time.monotonic()
            for name, _ in self.folders():
                self.lake.spark.sql(f"VACUUM {name}")
            seconds["vacuum"] = round(time.monotonic() - begun, 3)
        return {**seconds, "all": round(time.monotonic() - started, 3)}

    def set_retention(self) -> None:
        """Have each table keep removed files for the time that the days to keep took."""
        took, self.took = self.took, 0.0
        for name, _ in self.folders():
            self.lake.spark.sql(
                f"ALTER TABLE {name} SET TBLPROPERTIES ("
                f"'delta.deletedFileRetentionDuration' = "
                f"'interval {math.ceil(took * self.plan.keep)} seconds')"
            )

    def age_logs(self, minute: int) -> None:
        """Give each file of the logs the age it has in event time."""
        now, there = time.time(), {}
        for _, folder in self.folders():
            for path in (folder / "_delta_log").glob("*.*"):
                there[str(path)] = self.seen.get(str(path), minute)
                changed = now - (minute - there[str(path)]) * 60
                os.utime(path, (changed, changed))
        self.seen = there

    def check(self, ticks: int) -> dict[str, Any]:
        """Return how many keys of gold differ from the recompute, and from DuckDB's count."""
        different = reconcile.reconcile(self.lake, self.lake.pipeline.views[0]).different
        first = self.plan.counted_from(ticks)
        with temporary("week") as folder:
            duckdb.sql(f"COPY ({events_of(self.plan, first, ticks)}) TO '{folder}/0.parquet'")
            wrong = tick.wrong_keys(self.lake.spark, folder, 0)
        return {"ticks": ticks, "different": different, "wrong": wrong}


def in_log(folder: Path) -> dict[str, int | None]:
    """Count the files and bytes of a table's newest version, by its checksum file, and of its
    log."""
    log = folder / "_delta_log"
    sizes = [entry.stat().st_size for entry in os.scandir(log) if entry.is_file()]
    found: dict[str, Any] = {}
    checksum = log / f"{ledger.newest_version(log):020}.crc"
    if checksum.exists():
        found = json.loads(checksum.read_text(encoding="utf-8"))
    return {
        "files": found.get("numFiles"),
        "bytes": found.get("tableSizeBytes"),
        "log_files": len(sizes),
        "log_bytes": sum(sizes),
    }


def on_disk(folder: Path) -> dict[str, int]:
    """Count the data files that are there, of whatever version."""
    paths = (path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts)
    sizes = [path.stat().st_size for path in paths]
    return {"files": len(sizes), "bytes": sum(sizes)}


def open_week(folder: Path, plan: Plan, memory: str) -> Week:
    """Return the lake of the shipped pipeline, which keeps buckets for a day."""
    definition = load("engagement").overridden({"history": "1d"})
    spark = session(driver_memory=memory)
    lake = open_for_writing(spark, Place(folder / "lake"), definition)
    of_lake = queries.Pipeline(lake, Files(Path()), Clock(), "event")
    week = Week(lake, plan, runner.Recorder(of_lake), folder / AGES)
    week.recall()
    return week


def run(folder: Path, plan: Plan, memory: str) -> None:
    """Run the ticks that are not recorded yet, then compare gold."""
    duckdb.sql("SET TimeZone = 'UTC'")
    path = folder / RECORDS
    records = read(path) if path.exists() else []
    if records:  # the same events again, perhaps more ticks
        plan = replace(plan_of(records)[0], ticks=plan.ticks)
    done = ticks_of(records)
    first = done[-1]["tick"] + 1 if done else plan.start
    week = open_week(folder, plan, memory)
    if not done and plan.start:
        week.fill()
    with path.open("a", encoding="utf-8") as file:
        append(file, {"plan": vars(plan) | {"memory": memory}, "machine": machine(memory)})
        for number in range(first, plan.ticks):
            record = week.tick(number)
            append(file, record)
            if number % 10 == 0 or "upkeep" in record:
                say(line(record, plan.ticks))
        append(file, {"check": week.check(plan.ticks)})


def append(file: Any, record: Record) -> None:
    file.write(json.dumps(record) + "\n")
    file.flush()


def line(record: Record, ticks: int) -> str:
    files = sum(table["files"] or 0 for table in record["tables"].values())
    maintained = f", maintenance {record['upkeep']['all']:.1f} s" if "upkeep" in record else ""
    return (
        f"tick {record['tick'] + 1} of {ticks}: {record['seconds']:.2f} s, {record['mode']}, "
        f"{files} files, {record['memory']} MiB{maintained}"
    )


def read(path: Path) -> list[dict[str, Any]]:
    """Return the records, without a last line that was cut off."""
    found = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


def plan_of(records: Sequence[dict[str, Any]]) -> tuple[Plan, str]:
    """Return what was run, and with how much driver memory."""
    told = [dict(record["plan"]) for record in records if "plan" in record][-1]
    memory = told.pop("memory")
    return Plan(**told), memory


def ticks_of(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record for record in records if "tick" in record]


# -- report --------------------------------------------------------------------------------------


def total(name: str) -> Callable[[Record], float]:
    """Return what adds a number up over all tables."""
    return lambda record: sum(table[name] or 0 for table in record["tables"].values())


def kept(name: str) -> Callable[[Record], float | None]:
    """Return what adds a number of the disk up; None for a tick without maintenance."""

    def found(record: Record) -> float | None:
        if "disk" not in record:
            return None
        return float(sum(table[name] for table in record["disk"].values()))

    return found


Judged = tuple[Callable[[Record], float | None], str, float | None]
LINES: dict[str, Judged] = {
    "seconds a tick": (lambda record: record["seconds"], "{:.2f} s", 1.2),
    "seconds of CPU a tick": (lambda record: record.get("cpu"), "{:.2f} s", None),
    "seconds of maintenance": (lambda r: r.get("upkeep", {}).get("all"), "{:.2f} s", None),
    "keys changed": (lambda record: record["changed"], "{:,.0f}", None),
    "files of the newest versions": (total("files"), "{:,.0f}", 1.1),
    "bytes of them": (total("bytes"), "{:,.0f}", None),
    "files on the disk, after maintenance": (kept("files"), "{:,.0f}", 1.1),
    "bytes of them, with older versions": (kept("bytes"), "{:,.0f}", None),
    "files of the logs": (total("log_files"), "{:,.0f}", 1.1),
    "bytes of the logs": (total("log_bytes"), "{:,.0f}", 1.1),
    "memory of Python and JVM, MiB": (lambda record: record["memory"], "{:,.0f}", None),
}


def parts(records: Sequence[Record], step: int) -> tuple[str, list[Sequence[Record]]]:
    """Return the whole days of the records, or four equal parts of fewer than three days."""
    day = DAY // step
    length, name = (day, "day") if len(records) >= 3 * day else (len(records) // PARTS, "quarter")
    starts = range(0, len(records) - length + 1, length)
    return name, [records[start : start + length] for start in starts]


def report(records: Sequence[dict[str, Any]]) -> str:
    """Return what was measured, as Markdown."""
    ticks, (plan, memory) = ticks_of(records), plan_of(records)
    if len(ticks) < PARTS:
        sys.exit(f"{len(ticks)} ticks are too few for a table")
    length = "a minute" if plan.step == 1 else f"{plan.step} minutes"
    name, each = parts(ticks, plan.step)
    second, last = each[1], each[-1]
    days = "a day" if plan.keep == 1 else f"{plan.keep:g} days"
    kept_for = (
        f"kept for {days}, logs for 6 hours of event time" if plan.keep else "kept as declared"
    )
    lines = [
        f"{len(ticks):,} ticks of {length}, {plan.events} events each, {plan.keys:,} "
        f"possible keys; buckets kept for a day, removed files {kept_for}.",
        "",
        machine(memory),
        "",
        f"| median | second {name} | last {name} | ratio |",
        "|---|---:|---:|---:|",
    ]
    for what, (value, form, most) in LINES.items():
        before, after = (middle(part, value) for part in (second, last))
        ratio = wish(after / before, most) if before else ""
        lines.append(f"| {what} | {form.format(before)} | {form.format(after)} | {ratio} |")
    lines += ["", f"| table, median of the last {name} | files | bytes | log files | log bytes |"]
    lines += ["|---|---:|---:|---:|---:|", *by_table(last), "", checked(records)]
    return "\n".join(lines) + "\n"


def middle(part: Sequence[Record], value: Callable[[Record], float | None]) -> float:
    found = [each for record in part if (each := value(record)) is not None]
    return statistics.median(found) if found else 0.0


def by_table(part: Sequence[Record]) -> Iterator[str]:
    for table in part[-1]["tables"]:
        counts = (
            statistics.median(record["tables"].get(table, {}).get(name) or 0 for record in part)
            for name in ("files", "bytes", "log_files", "log_bytes")
        )
        yield f"| {table} | {' | '.join(f'{count:,.0f}' for count in counts)} |"


def checked(records: Sequence[Record]) -> str:
    found = [record["check"] for record in records if "check" in record]
    if not found:
        return "Gold was not compared yet: the run is not at its end."
    return (
        f"After tick {found[-1]['ticks']:,} {found[-1]['different']} keys differ from the "
        f"recompute, and {found[-1]['wrong']} from DuckDB's count."
    )


def draw(records: Sequence[Record], step: int, path: Path) -> None:
    """Draw seconds, files, logs and memory by the hour."""
    hour = max(1, HOUR // step)
    hours = [records[start : start + hour] for start in range(0, len(records), hour)]
    days = [number * HOUR / DAY for number in range(len(hours))]
    panels: dict[str, Mapping[str, Callable[[Record], float | None]]] = {
        "seconds": {"a tick": lambda record: record["seconds"]},
        "files": {"newest versions": total("files"), "on the disk": kept("files")},
        "MB": {"logs": lambda record: total("log_bytes")(record) / 1e6},
        "MiB": {"all memory": lambda r: r["memory"], "JVM": lambda r: r["jvm"]},
    }
    stack([panel(unit, days, hours, lines) for unit, lines in panels.items()], path)


def stack(charts: Sequence[Any], path: Path) -> None:
    """Draw the charts below one another."""
    import altair as alt

    path.parent.mkdir(exist_ok=True)
    for chart in charts:
        chart.config = alt.Undefined  # that of one of several charts stands with all of them
    made = alt.vconcat(*charts).resolve_scale(color="independent").configure_view(stroke=None)
    plotting.save(made, path)


def panel(
    unit: str,
    days: Sequence[float],
    hours: Sequence[Sequence[Record]],
    lines: Mapping[str, Callable[[Record], float | None]],
) -> Any:
    rows = [
        [day, *(middle(each, value) for value in lines.values())]
        for day, each in zip(days, hours, strict=True)
    ]
    named = {"value": unit} if len(lines) > 1 else {name: f"{unit}, {name}" for name in lines}
    return plotting.chart(
        ["day", *lines], rows, kind="line", x="day", y=[*lines], labels=named, height=140
    )


def tomorrow() -> int:
    """Return the next midnight. Events go on from there, so that event time is always ahead of the
    machine's: a day of `tidemill_batches`, which has the machine's date, is always closed."""
    return (int(time.time()) // 86_400 + 1) * 86_400


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(tempfile.gettempdir()) / "tidemill-week"
    options.add_argument("--folder", type=Path, default=here, help="of the lake and the records")
    options.add_argument("--fresh", action="store_true", help="begin again in that folder")
    options.add_argument("--ticks", type=int, default=7 * DAY)
    options.add_argument("--from", type=int, default=0, metavar="TICK", dest="start")
    options.add_argument("--step", type=int, default=1, help="minutes of a tick, to try it")
    options.add_argument("--events", type=int, default=100, help="events of a tick")
    options.add_argument("--keys", type=int, default=1_000)
    options.add_argument("--keep", type=float, default=1, help="days; 0 for what is declared")
    options.add_argument("--record", type=int, default=10, help="ticks between two records")
    options.add_argument("--memory", default="2g", help="driver memory")
    options.add_argument("--report", type=Path, metavar="FILE", help="make table and picture only")
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    asked = options.parse_args()
    words = ("ticks", "step", "events", "keys", "keep", "record", "start")
    plan = Plan(**{word: getattr(asked, word) for word in words}, first=tomorrow())
    if not asked.report:
        if asked.fresh:
            shutil.rmtree(asked.folder, ignore_errors=True)
        asked.folder.mkdir(parents=True, exist_ok=True)
        run(asked.folder, plan, asked.memory)
    records = read(asked.report or asked.folder / RECORDS)
    print(table := report(records))
    picture = CURVES / "week.png" if asked.write else Path(tempfile.gettempdir()) / "week.png"
    draw(ticks_of(records), plan_of(records)[0].step, picture)
    say(f"the picture is {picture}")
    if asked.write:
        write(f"{table}\n![A week of ticks](curves/week.png)\n", "week")


if __name__ == "__main__":
    main()
