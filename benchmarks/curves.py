"""What an incremental tick costs as one thing grows: keys, rate, window, late events, a hot key.

    generated events ──load──► a lake per point ──tick──► the points take turns, tick by tick
                                                └─ gold equal to DuckDB's count ─► seconds, ratios

Each curve runs in a process of its own, so that one that fails leaves the others. The first rounds
of ticks only warm up; gold is compared after each one that counts, and one difference ends the
curve without a time. `--write` puts the tables and pictures into docs/.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import tick
from measuring import CURVES as PICTURES
from measuring import machine, say, spread, temporary, wish, write
from pyspark.sql.streaming.query import StreamingQuery
from tick import GOLD, WINDOWS, Size, Windows

from tidemill.config.settings import Clock
from tidemill.lake import catalog as lakes
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.stateful.engine import query_of
from tidemill.query import charts
from tidemill.sources.files.source import Files

STEPS = {"whole tick": "total", "query and diff": "diff", "MERGE": "merge"}
WARM = 16  # ticks of one JVM before any counts, whatever lake they are of
POLL = 0.05


@dataclass(frozen=True)
class Point:
    """One lake of a curve."""

    label: str
    size: Size
    windows: Windows = field(default_factory=WINDOWS.copy)


@dataclass(frozen=True)
class Curve:
    """Points that differ in one thing, and the ratio of two of them that is wished for."""

    title: str
    axis: str
    told: str
    points: tuple[Point, ...]
    base: str
    top: str
    most: float | None = None
    engine: str = "buckets"


@dataclass(frozen=True)
class Sample:
    """One tick of one lake."""

    total: float
    diff: float
    merge: float
    changed: int
    gold_rows: int


# -- the curves ----------------------------------------------------------------------------------


def keys() -> Curve:
    size = Size(events=2_000_000, keys=0, events_per_tick=2_000, even=True)
    numbers = (10_000, 20_000, 200_000, 2_000_000)
    return Curve(
        title="Tick by keys",
        axis="keys",
        told="2,000,000 events over 25 h and 2,000 a tick, spread evenly over the keys",
        points=tuple(Point(f"{n:,}", replace(size, keys=n)) for n in numbers),
        base="20,000",
        top="2,000,000",
        most=2,
    )


def rate() -> Curve:
    size = Size(events=500_000, keys=50_000, events_per_tick=0)
    numbers = (100, 1_000, 10_000, 100_000)
    return Curve(
        title="Tick by rate",
        axis="events a tick",
        told="500,000 events over 25 h, 50,000 possible keys; a tick is a minute of events",
        points=tuple(Point(f"{n:,}", replace(size, events_per_tick=n)) for n in numbers),
        base="1,000",
        top="100,000",
    )


def windows() -> Curve:
    size = Size(1_000_000, keys=1_000, events_per_tick=1_000, minutes=31 * 1440, even=True)
    lengths = {"1h": 60, "12h": 720, "1d": 1440, "7d": 10_080, "30d": 43_200}
    return Curve(
        title="Tick by length of the window",
        axis="window",
        told="1,000,000 events over 31 days, 1,000 keys, 1,000 events a tick, the same of each; a "
        "view with one window",
        points=tuple(Point(name, size, {name: length}) for name, length in lengths.items()),
        base="1h",
        top="30d",
        most=1.2,
    )


def late() -> Curve:
    size = Size(events=500_000, keys=50_000, events_per_tick=5_000)
    shares = (0.0, 0.03, 0.1, 0.3)
    return Curve(
        title="Tick by late events",
        axis="late events",
        told="500,000 events over 25 h, 50,000 possible keys, 5,000 events a tick, late ones by up "
        "to three hours",
        points=tuple(Point(f"{share:.0%}", replace(size, late=share)) for share in shares),
        base="0%",
        top="30%",
        most=1.5,
    )


def skew() -> Curve:
    size = Size(events=500_000, keys=20_000, events_per_tick=5_000, even=True)
    return Curve(
        title="Tick with a hot key",
        axis="events of the first key",
        told="500,000 events over 25 h, 20,000 keys, 5,000 events a tick",
        points=(Point("as of any", size), Point("half of all", replace(size, hot=0.5))),
        base="as of any",
        top="half of all",
        most=1.3,
    )


def skew_stateful() -> Curve:
    told = "50,000 events over 25 h, 2,000 keys, 500 events a tick, engine: stateful"
    size = Size(events=50_000, keys=2_000, events_per_tick=500, even=True)
    points = (Point("as of any", size), Point("half of all", replace(size, hot=0.5)))
    title = "Tick with a hot key, stateful"
    return replace(skew(), title=title, told=told, points=points, engine="stateful")


ALL = {
    "keys": keys,
    "rate": rate,
    "windows": windows,
    "late": late,
    "skew": skew,
    "skew-stateful": skew_stateful,
}


def scaled(curve: Curve, scale: float) -> Curve:
    """Return a smaller curve, to try the program; its labels stay."""

    def smaller(size: Size) -> Size:
        names = ("events", "keys", "events_per_tick")
        return replace(size, **{n: max(10, int(getattr(size, n) * scale)) for n in names})

    return replace(curve, points=tuple(replace(p, size=smaller(p.size)) for p in curve.points))


# -- ticks ---------------------------------------------------------------------------------------


@dataclass
class Running:
    """A point's lake; with the stateful engine also the query that keeps its state."""

    point: Point
    folder: Path
    lake: Lake
    query: StreamingQuery | None = None

    def feed(self, batch: int) -> float:
        """Run one batch until gold holds it; return its seconds."""
        lakes.register(self.lake.spark, self.lake.place)
        started = time.monotonic()
        seconds = tick.feed(self.lake, self.folder, batch)
        if self.query:
            self.wait_for(batch)
            return time.monotonic() - started
        return seconds

    def keep_state(self, batch: int) -> None:
        """Start the query that keeps the state, and wait until gold holds the batch."""
        view = self.lake.pipeline.views[0]
        pipeline = Pipeline(self.lake, Files(Path()), Clock(), "event")
        pipeline.claim([query_of(view)])
        self.query = pipeline.start(query_of(view), {"processingTime": "0 seconds"})
        self.wait_for(batch)

    def wait_for(self, batch: int) -> None:
        assert self.query
        while self.lake.gold_state(self.lake.pipeline.views[0]).batch < batch:
            if not self.query.isActive:
                sys.exit(f"the query that keeps the state ended: {self.query.exception()}")
            time.sleep(POLL)  # a table tells of its commits only when asked

    def sample(self, batch: int) -> Sample:
        """Run one batch and return what it took, by gold's ledger."""
        total = self.feed(batch)
        spark = self.lake.spark
        commit = ledger.commits(spark, GOLD, 1)[0]
        told = commit.ledger or {}
        mode = "stateful" if self.query else "incremental"
        if (told.get("mode"), told.get("batch")) != (mode, batch):
            sys.exit(f"batch {batch} of {self.point.label} was no {mode} tick: {told}; no times")
        diff, merge = told["seconds"]["diff"], commit.metric("executionTimeMs") / 1000
        return Sample(total, diff, merge, int(told["changed"]), spark.table(GOLD).count())

    def check(self, batch: int) -> None:
        """Stop when gold is not what DuckDB counts."""
        events, windows = self.folder / "events", self.point.windows
        if wrong := tick.wrong_keys(self.lake.spark, events, batch, windows):
            sys.exit(f"batch {batch} of {self.point.label}: {wrong} keys are wrong; no times")


def started(point: Point, folder: Path, engine: str, ticks: int, memory: str) -> Running:
    """Return the point's lake with its load."""
    tick.write_events(folder / "events", point.size, ticks)
    words = {}
    if engine == "stateful":  # queries of one session have different names
        words = {"refresh": "auto", "engine": engine, "pipeline": f"engagement_{folder.name}"}
    lake = tick.open_lake(folder, "incremental", point.windows, memory=memory, words=words)
    lake.spark.conf.set("spark.sql.streaming.pollingDelay", "100ms")  # queries at rest cost little
    found = Running(point, folder, lake)
    begun = time.monotonic()
    found.feed(0)
    if engine == "stateful":
        found.keep_state(0)
    found.check(0)
    say(f"{point.label}: loaded in {time.monotonic() - begun:.0f} s, equal to DuckDB")
    return found


def measure(
    curve: Curve, folder: Path, rounds: int, ticks: int, memory: str
) -> dict[str, list[Sample]]:
    """Return the counted ticks of each point; the lakes take turns."""
    running = [
        started(point, folder / str(number), curve.engine, rounds + ticks, memory)
        for number, point in enumerate(curve.points)
    ]
    found: dict[str, list[Sample]] = {point.label: [] for point in curve.points}
    try:
        for batch in range(1, rounds + ticks + 1):
            for each in running:
                sample, counts = each.sample(batch), batch > rounds
                if counts:
                    each.check(batch)
                    found[each.point.label].append(sample)
                told = "equal to DuckDB" if counts else "to warm up"
                say(f"tick {batch} of {each.point.label}: {sample.total:.2f} s, {told}")
    finally:
        for each in running:
            if each.query:
                each.query.stop()
    return found


# -- report --------------------------------------------------------------------------------------


def ratio(found: dict[str, list[Sample]], top: str, base: str, name: str) -> float:
    """Return the median, over the rounds, of one point's tick to another's."""
    pairs = zip(found[top], found[base], strict=True)
    each = [getattr(a, name) / getattr(b, name) for a, b in pairs if getattr(b, name)]
    return statistics.median(each) if each else math.nan


def report(curve: Curve, found: dict[str, list[Sample]], rounds: int, memory: str) -> str:
    """Return what was measured, as Markdown."""
    ticks, wished = len(found[curve.base]), ratio(found, curve.top, curve.base, "total")
    heads = [f"{name} | ratio" for name in STEPS]
    lines = [
        f"{curve.told}. {ticks} ticks of each lake, after {rounds} that warm up, in turns.",
        "",
        machine(memory),
        "",
        f"| {curve.axis} | {' | '.join(heads)} | keys changed | rows of gold |",
        f"|---:|{'---:|' * (2 * len(STEPS) + 2)}",
    ]
    for label, samples in found.items():
        cells = [label]
        for step in STEPS.values():
            cells.append(spread([getattr(one, step) for one in samples], "{:.2f} s"))
            cells.append(f"{ratio(found, label, curve.base, step):.2f}x")
        for count in ("changed", "gold_rows"):
            cells.append(f"{statistics.median(getattr(one, count) for one in samples):,.0f}")
        lines.append(f"| {' | '.join(cells)} |")
    told = f"Whole tick, {curve.top} to {curve.base}: {wish(wished, curve.most)}."
    return "\n".join([*lines, "", told]) + "\n"


def draw(curve: Curve, found: dict[str, list[Sample]], path: Path) -> None:
    """Draw the medians of each step by the points."""
    rows = [
        [label, *(statistics.median(getattr(s, f) for s in samples) for f in STEPS.values())]
        for label, samples in found.items()
    ]
    made = charts.chart(
        [curve.axis, *STEPS],
        rows,
        kind="line" if len(rows) > 2 else "bar",
        title=curve.title,
        labels={"value": "seconds, median"},
    )
    path.parent.mkdir(exist_ok=True)
    charts.save(made, path)


def run(name: str, asked: argparse.Namespace) -> None:
    """Measure one curve here."""
    curve = scaled(ALL[name](), asked.scale)
    rounds = math.ceil(asked.warm / len(curve.points))
    with temporary(f"curve-{name}") as folder:
        found = measure(curve, folder, rounds, asked.ticks, asked.memory)
    print(f"\n## {curve.title}\n\n{(table := report(curve, found, rounds, asked.memory))}")
    if asked.write:
        draw(curve, found, PICTURES / f"{name}.png")
        write(f"{table}\n![{curve.title}](curves/{name}.png)\n", f"curve {name}")


def run_each(names: Sequence[str], rest: Sequence[str]) -> int:
    """Measure each curve in a process of its own; return how many failed."""
    failed = []
    for name in names:
        say(f"curve {name}")
        if subprocess.run([sys.executable, __file__, name, *rest], check=False).returncode:
            failed.append(name)
            say(f"curve {name} failed; the others go on")
    if failed:
        say(f"failed: {' '.join(failed)}")
    return len(failed)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("curves", nargs="*", metavar="CURVE", help=f"of {' '.join(ALL)}")
    options.add_argument("--ticks", type=int, default=7, help="ticks of each lake, 5 or more")
    options.add_argument("--warm", type=int, default=WARM, help="ticks of all lakes to warm up")
    options.add_argument("--scale", type=float, default=1, help="a part of the events and keys")
    options.add_argument("--memory", default="4g", help="driver memory")
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    asked = options.parse_args()
    names = asked.curves or list(ALL)
    if strange := set(names) - set(ALL):
        options.error(f"no such curve: {' '.join(sorted(strange))}")
    if len(names) == 1:
        run(names[0], asked)
        return
    rest = [text for text in sys.argv[1:] if text not in names]
    sys.exit(run_each(names, rest))


if __name__ == "__main__":
    main()
