"""Tidemill and other engines side by side: the same events, the same nine features.

    python benchmarks/peers/run.py --size small --peers duckdb recompute incremental sliding flink

Events are generated once. Each peer is a process of its own, one after the other. First every
result of every tick is compared with DuckDB's count straight from the events; a peer gets times
only when all of its results are equal, else the number of keys that differ. `--write` puts the
table into docs/benchmarks.md. `--feast` adds feast_tiling.py: exactness only, no times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peer
import tick
from tick import COLUMNS, SIZES, Size

HERE = Path(__file__).parent
PEERS = {
    "duckdb": ("DuckDB, one thread, all events again", ["duckdb_full.py"]),
    "recompute": ("Tidemill, recompute", ["tidemill_mode.py", "--mode", "recompute"]),
    "incremental": ("Tidemill, incremental", ["tidemill_mode.py", "--mode", "incremental"]),
    "stateful": ("Tidemill, stateful engine", ["tidemill_mode.py", "--mode", "stateful"]),
    "sliding": ("Spark `window()`, update mode", ["sliding.py"]),
    "flink": ("Flink SQL, HOP", ["flink.py"]),
}


@dataclass(frozen=True)
class Ran:
    """What a peer wrote: its times, what it counted, and the keys that differ after each batch."""

    name: str
    times: list[dict[str, Any]]
    part: peer.Part
    share: float  # of the keys
    wrong: list[int]
    counted: int  # of the ticks, the last ones: those before only warm up

    @property
    def warm(self) -> list[dict[str, Any]]:
        return self.times[-self.counted :]


def ran(name: str, events: Path, ticks: int, counted: int, out: Path) -> Ran:
    """Run a peer and compare what it wrote; the last `counted` ticks are warm."""
    title, (program, *words) = PEERS[name]
    asked = ["--events", str(events), "--ticks", str(ticks), "--out", str(out)]
    subprocess.run([sys.executable, str(HERE / program), *words, *asked], check=True)
    part = peer.Part.read(out, COLUMNS)
    wrong = [wrong_keys(out, part, events, batch) for batch in range(ticks + 1)]
    times = [json.loads(line) for line in (out / "times.jsonl").read_text().splitlines()]
    assert len(times) == ticks + 1, f"{name} tells of every batch"
    print(f"{title}: keys that differ after each batch: {wrong}", file=sys.stderr)
    return Ran(name, times, part, share(events, ticks, part), wrong, counted)


def wrong_keys(out: Path, part: peer.Part, events: Path, batch: int) -> int:
    """Count the keys of the peer's part whose features are not what DuckDB counts."""
    different = " OR ".join(f"coalesce(f.{c}, 0) <> coalesce(w.{c}, 0)" for c in part.columns)
    twice, wrong = peer.row(
        f"""
        WITH found AS (FROM '{out}/{batch}.parquet'),
        wanted AS (FROM ({tick.wanted(events, batch)}) WHERE {part.keys})
        SELECT
          (SELECT count(*) - count(DISTINCT (profile_id, gti)) FROM found),
          (SELECT count(*) FROM found AS f FULL JOIN wanted AS w USING (profile_id, gti)
           WHERE {different})
        """
    )
    return int(twice) + int(wrong)


def share(events: Path, ticks: int, part: peer.Part) -> float:
    """Return the part of all events that the peer counts."""
    files = [f"{events}/{batch}.parquet" for batch in range(ticks + 1)]
    (found,) = peer.row(f"SELECT avg(CAST(({part.keys}) AS INT)) FROM read_parquet({files})")
    return float(found)


def feast(events: Path, ticks: int, out: Path) -> str:
    """Return how many keys of Feast's tiling are equal, as Markdown."""
    asked = ["--events", str(events), "--ticks", str(ticks), "--out", str(out)]
    subprocess.run([sys.executable, str(HERE / "feast_tiling.py"), *asked], check=True)
    return (out / "exactness.md").read_text()


# -- the table -----------------------------------------------------------------------------------

NUMBERS: dict[str, Callable[[dict[str, Any]], float]] = {
    "wall": lambda time: float(time["seconds"]),
    "CPU": lambda time: float(time["cpu"]),
}


def report(size: Size, ran: list[Ran]) -> str:
    """Return what was found, as Markdown."""
    lines = [
        f"{size.events:,} events over 25 h, {size.keys:,} possible keys, {size.events_per_tick:,} "
        f"events a tick; 1 cold tick, {len(ran[0].times) - 2 - ran[0].counted} to warm up, "
        f"{ran[0].counted} warm ticks each.",
        "",
        tick.machine(),
        "",
        "| | equal | warm tick, wall | warm tick, CPU | peak memory | cold tick | load |",
        "|---|---|---:|---:|---:|---:|---:|",
        *(f"| {PEERS[each.name][0]}{note(each)} | {' | '.join(cells(each))} |" for each in ran),
    ]
    worked = [each for each in ran if "jobs" in each.times[0] and not any(each.wrong)]
    if worked:
        lines += [
            "",
            "| of a warm tick, median | Spark jobs | tasks | commits | bytes read |",
            "|---|---:|---:|---:|---:|",
            *(f"| {PEERS[each.name][0]} | {' | '.join(work(each))} |" for each in worked),
        ]
    return "\n".join(lines) + "\n"


def note(each: Ran) -> str:
    """Return what of the whole the peer counted, where it is not all."""
    words = []
    if each.share < 1:
        words.append(f"{each.share:.1%} of the events")
    if len(each.part.columns) < len(COLUMNS):
        words.append(f"{len(each.part.columns)} of {len(COLUMNS)} features")
    return f" ({', '.join(words)})" if words else ""


def cells(each: Ran) -> list[str]:
    if any(each.wrong):
        worst = max(each.wrong)
        return [f"no: up to {worst:,} keys differ", *[""] * 5]
    return [
        "yes",
        told([NUMBERS["wall"](time) for time in each.warm]),
        told([NUMBERS["CPU"](time) for time in each.warm]),
        f"{max(time['memory'] for time in each.warm) / 2**20:,.0f} MB",
        f"{each.times[1]['seconds']:.2f} s",
        f"{each.times[0]['seconds']:.2f} s",
    ]


def told(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} s ({min(values):.2f} s to {max(values):.2f} s)"


def work(each: Ran) -> list[str]:
    names = ("jobs", "tasks", "commits", "read")
    return [f"{statistics.median(time[name] for time in each.warm):,.0f}" for name in names]


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--size", choices=SIZES, default="small", help="how much there is")
    options.add_argument("--ticks", type=int, default=5, help="warm ticks, 5 or more")
    options.add_argument("--warm", type=int, default=5, help="ticks between that only warm up")
    options.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    options.add_argument("--feast", action="store_true", help="and whether its tiling is exact")
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    asked = options.parse_args()
    size, ticks = SIZES[asked.size], 1 + asked.warm + asked.ticks
    with tempfile.TemporaryDirectory(prefix="tidemill-peers-") as name:
        folder = Path(name)
        tick.write_events(folder / "events", size, ticks)
        events = folder / "events"
        found = [ran(one, events, ticks, asked.ticks, folder / one) for one in asked.peers]
        tiling = feast(events, ticks, folder / "feast") if asked.feast else ""
    print(table := report(size, found))
    if asked.write:
        tick.write(table, "peers")
    if asked.write and tiling:
        tick.write(tiling, "feast")


if __name__ == "__main__":
    main()
