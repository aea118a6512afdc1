"""How fast a generation is made again beside the path that events take as they come.

    a file a run ──run --once──► bronze ─► events ─► buckets ─► gold, each time        live
    all files    ──rebuild --from source──► the same tables beside, gold once          rebuild

Both read the same JSON lines, in one process with one session; the first run of either is a warm-up
on fewer events. Before a time counts, `diff` finds no key that differs. `--write` puts the
table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from measuring import machine, metered, say, temporary, write

import tidemill
from tidemill.config.pipeline_file import PipelineDefinition

FIRST = datetime(2026, 11, 18, tzinfo=timezone.utc)
PER_FILE, MINUTES = 20_000, 20
VIEW = {
    "name": "items",
    "keys": ["item"],
    "event_time": "at",
    "schema": {"item": "string", "kind": "string", "amount": "bigint"},
    "features": [
        {"count": {"by": {"kind": ["ask", "buy", "look"]}}, "over": ["1h", "12h", "1d"]},
        {"sum": "amount", "over": ["1h", "1d"]},
    ],
}


@dataclass
class Made:
    """What one way took."""

    seconds: float
    cpu: float


def write_events(folder: Path, files: int) -> int:
    """Write so many files of events, twenty minutes each; return how many events."""
    folder.mkdir(parents=True)
    drawn = random.Random(22)
    for number in range(files):
        start = FIRST + timedelta(minutes=MINUTES * number)
        lines = []
        for place in range(PER_FILE):
            at = start + timedelta(seconds=drawn.random() * MINUTES * 60)
            said = {
                "event_id": f"e{number}-{place}",
                "item": f"item-{drawn.randrange(20_000)}",
                "kind": drawn.choice(("ask", "buy", "look")),
                "amount": drawn.randrange(1000),
                "at": at.isoformat(),
            }
            lines.append(json.dumps(said))
        path = folder / f"{number:04}.jsonl"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (start.timestamp(), start.timestamp()))
    return files * PER_FILE


def definition(events: Path) -> PipelineDefinition:
    words: dict[str, Any] = {
        "pipeline": "items",
        "source": {"kind": "files", "input": str(events)},
        "views": [VIEW],
    }
    return PipelineDefinition.model_validate(words)


def measured(folder: Path, files: int) -> tuple[int, dict[str, Made]]:
    """Bring the files through both ways; fail where gold differs."""
    events, root = folder / "events", folder / "lake"
    count = write_events(events, files)
    ways = {}
    coming, accepted = sorted(events.iterdir()), 0
    waiting = events.rename(folder / "waiting")
    events.mkdir()
    say(f"live, {files} runs of {PER_FILE:,}")
    live = tidemill.open_lake(root, pipeline=definition(events), write=True)
    with metered() as usage, timed() as taken, live as lake:
        for path in coming:
            (waiting / path.name).rename(path)
            accepted += lake.run_once()["accepted"]
    if accepted != count:
        raise SystemExit(f"{accepted} of {count} events accepted")
    ways["live"] = Made(taken[0], usage.cpu)
    say("rebuild")
    again = tidemill.open_lake(root, pipeline=definition(events))
    with metered() as usage, timed() as taken:
        again.rebuild_from_source()
    ways["rebuild"] = Made(taken[0], usage.cpu)
    (compared,) = again.diff()
    if compared["different"] or not compared["keys"]:
        raise SystemExit(f"{compared['different']} of {compared['keys']} keys differ")
    say(f"{compared['keys']:,} keys, none differs")
    return count, ways


class timed:
    """Yields a list that holds the seconds of the block when it has ended."""

    def __enter__(self) -> list[float]:
        """Begin."""
        self._taken: list[float] = []
        self._begun = time.monotonic()
        return self._taken

    def __exit__(self, *_: object) -> None:
        """Keep the seconds."""
        self._taken.append(time.monotonic() - self._begun)


def table(count: int, ways: dict[str, Made]) -> str:
    """Return the table, as Markdown."""
    cores = os.cpu_count() or 1
    lines = [
        "| way | seconds | events a second and core | seconds of CPU |",
        "|---|---:|---:|---:|",
    ]
    for name, way in ways.items():
        rate = count / way.seconds / cores
        lines.append(f"| {name} | {way.seconds:.1f} | {rate:,.0f} | {way.cpu:.0f} |")
    ratio = ways["live"].seconds / ways["rebuild"].seconds
    note = (
        f"{count:,} events of {count // PER_FILE * MINUTES / 60:.0f} hours, 20,000 keys, "
        f"{PER_FILE:,} a batch; the rebuild is {ratio:.1f}x as fast."
    )
    return "\n".join([*lines, "", f"{note} {machine()}", ""])


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--files", type=int, default=30)
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    said = parser.parse_args()
    with temporary("rebuild") as folder:
        measured(folder / "warm-up", 3)
        count, ways = measured(folder / "measured", said.files)
        print(made := table(count, ways))
        if said.write:
            write(made, "rebuild")


if __name__ == "__main__":
    main()
