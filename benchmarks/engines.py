"""One tick by either engine, with even keys and with one key that has half of all events.

    the same events ──► buckets:   append ─► refresh, incremental
                    └─► stateful:  append ─► arrivals ─► the state query, which is running ─► MERGE

A tick ends when gold's ledger names its batch. After every tick each gold is compared with DuckDB's
count of the generated events; only when all are equal are times printed. `--write` puts the table
into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tick

from tidemill import lake as lakes
from tidemill.features.definition import load
from tidemill.lake import Lake
from tidemill.pipeline import Pipeline
from tidemill.session import session
from tidemill.settings import Clock, Place

ENGINES = ("buckets", "stateful")
LOADS = ("even", "skewed")
PATIENCE = 300.0


@dataclass(frozen=True)
class Run:
    """A lake of one engine and one load of events."""

    lake: Lake
    folder: Path

    def tick(self, batch: int) -> float:
        """Run one batch until gold holds it; yield its seconds, once gold is found right."""
        lakes.register(self.lake.spark, self.lake.place)
        started = time.monotonic()
        tick.feed(self.lake, self.folder, batch)
        while self.lake.standing(self.lake.pipeline.views[0]).batch < batch:
            if time.monotonic() - started > PATIENCE:
                sys.exit(f"batch {batch} did not reach gold in {PATIENCE:.0f} s")
            time.sleep(0.02)
        took = time.monotonic() - started
        wrong = tick.wrong_keys(self.lake.spark.table(tick.GOLD), self.folder / "events", batch)
        if wrong:
            sys.exit(f"tick {batch}: {wrong} keys of gold are not what DuckDB counts; no times")
        return took


@contextmanager
def running(folder: Path, engine: str) -> Iterator[Run]:
    """Yield the engine on a new lake; its state query runs meanwhile, where it has one."""
    mode = {"refresh": "incremental"} if engine == "buckets" else {"engine": engine}
    definition = load("engagement").overridden(mode)
    lake = lakes.open_for_writing(session(), Place(folder / engine), definition)
    source: Any = None  # events are given to the batch function
    flow = Pipeline(lake, source, Clock(), "event")
    if flow.states:
        flow.claim(tuple(flow.states))
    queries = [flow.start(name, {"processingTime": "0 seconds"}) for name in flow.states]
    try:
        yield Run(lake, folder)
    finally:
        for query in queries:
            query.stop()


def measured(size: tick.Size, ticks: int) -> dict[str, list[float]]:
    """Yield the seconds of each tick by `<engine> <load>`: the first is the load, the second is
    cold."""
    found: dict[str, list[float]] = {}
    for each in LOADS:
        folder = Path(tempfile.mkdtemp(prefix="tidemill-engines-"))
        try:
            tick.write_events(folder / "events", size, ticks + 1, skewed=each == "skewed")
            with running(folder, "buckets") as one, running(folder, "stateful") as other:
                for batch in range(ticks + 2):
                    for engine, run in zip(ENGINES, (one, other), strict=True):
                        found.setdefault(f"{engine} {each}", []).append(run.tick(batch))
                        print(f"{each} tick {batch} {engine}: equal to DuckDB", file=sys.stderr)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return found


def report(size: tick.Size, found: dict[str, list[float]]) -> str:
    """Yield what was measured, as Markdown."""
    ticks = len(found["buckets even"]) - 2
    lines = [
        f"{size.events:,} events over 25 h, {size.keys:,} possible keys, {size.events_per_tick:,} "
        f"events a tick; event clock; {ticks} warm ticks each. Skewed: one key has half of all "
        "events.",
        "",
        tick.machine(),
        "",
        "| whole tick, median (least to most) | even | skewed | skewed / even |",
        "|---|---:|---:|---:|",
    ]
    for engine in ENGINES:
        even, skewed = (found[f"{engine} {each}"][2:] for each in LOADS)
        ratio = statistics.median(skewed) / statistics.median(even)
        lines.append(f"| {engine} | {_told(even)} | {_told(skewed)} | {ratio:.2f}x |")
    ratios = [
        statistics.median(found[f"stateful {each}"][2:])
        / statistics.median(found[f"buckets {each}"][2:])
        for each in LOADS
    ]
    lines.append(f"| stateful / buckets | {ratios[0]:.1f}x | {ratios[1]:.1f}x | |")
    return "\n".join(lines) + "\n"


def _told(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} s to {max(seconds):.2f} s)"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--size", choices=tick.SIZES, default="small", help="how much there is")
    options.add_argument("--ticks", type=int, default=5, help="warm ticks, 5 or more")
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    asked = options.parse_args()
    size = tick.SIZES[asked.size]
    found = measured(size, asked.ticks)
    print("gold is equal to DuckDB's count after each tick of each engine\n")
    print(table := report(size, found))
    if asked.write:
        tick.write(table, "engines")


if __name__ == "__main__":
    main()
