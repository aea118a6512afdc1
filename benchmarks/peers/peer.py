"""What all peers share: one command line, one way to measure a tick, one form of a result.

    python benchmarks/peers/<name>.py --events DIR --ticks N --out OUT

    DIR/0.parquet, 1.parquet ...  ──bring──► the engine's result ──result──► OUT/0.parquet ...
                                   measured                       not measured
    OUT/times.jsonl: a line per batch: seconds, CPU seconds and peak memory of the process tree

Batch 0 is the load, 1 the cold tick, the rest are warm. A peer that counts only a part of the
features or of the keys says which in OUT/part.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import duckdb
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).parents[1]))  # for tick

CACHE = Path.home() / ".cache" / "tidemill-benchmarks"
LOOK_EVERY = 0.05  # seconds between two looks at the memory


@dataclass(frozen=True)
class Part:
    """What a peer counts: these columns, of the keys for which `keys` (SQL) holds."""

    columns: list[str]
    keys: str = "true"

    def write(self, out: Path) -> None:
        (out / "part.json").write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, out: Path, columns: list[str]) -> Part:
        """Yield the part that the peer told of, else all."""
        path = out / "part.json"
        return cls(**json.loads(path.read_text())) if path.exists() else cls(columns)


class Peer(Protocol):
    """An engine with the events of the batches so far."""

    def bring(self, batch: int) -> dict[str, Any]:
        """Bring the result up to date with one more batch; yield more to tell of it."""

    def result(self, batch: int) -> pa.Table:
        """Yield the features as they stand, `profile_id`, `gti` and counts."""


@dataclass
class Cost:
    """Wall seconds, CPU seconds and peak memory (RSS) of this process and all below it."""

    seconds: float = 0.0
    cpu: float = 0.0
    memory: int = 0
    _done: threading.Event = field(default_factory=threading.Event, repr=False)

    def look(self) -> None:
        while not self._done.wait(LOOK_EVERY):
            self.memory = max(self.memory, memory())


def tree() -> list[psutil.Process]:
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def memory() -> int:
    """Yield the resident bytes; pages that processes share count in each. A process counts from its
    second second on: just after a fork it shows its parent's memory as its own."""
    total, now = 0, time.time()
    for process in tree():
        with suppress(psutil.Error):
            total += process.memory_info().rss if now - process.create_time() > 1 else 0
    return total


def tree_cpu() -> float:
    """Yield the CPU seconds of the living and, through their parents, of those that ended."""
    total = 0.0
    for process in tree():
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])  # user, system, and both of ended children
    return total


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure what happens inside."""
    cost = Cost()
    looking = threading.Thread(target=cost.look, daemon=True)
    looking.start()
    cpu, started = tree_cpu(), time.monotonic()
    try:
        yield cost
    finally:
        cost.seconds = time.monotonic() - started
        cost.cpu = tree_cpu() - cpu
        cost._done.set()
        looking.join()
        cost.memory = max(cost.memory, memory())


def arguments(description: str) -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=description.splitlines()[0])
    options.add_argument("--events", type=Path, required=True, help="folder of 0.parquet ...")
    options.add_argument("--ticks", type=int, required=True, help="how many ticks follow the load")
    options.add_argument("--out", type=Path, required=True, help="folder of results and times")
    return options


def run(peer: Peer, ticks: int, out: Path) -> None:
    """Bring the peer through all batches, writing each result and what it cost."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / "times.jsonl").open("w") as lines:
        for batch in range(ticks + 1):
            with measured() as cost:
                more = peer.bring(batch)
            told = {"tick": batch, "seconds": cost.seconds, "cpu": cost.cpu, "memory": cost.memory}
            lines.write(json.dumps({**told, "note": "", **more}) + "\n")
            lines.flush()
            pq.write_table(peer.result(batch), out / f"{batch}.parquet")


def row(statement: str) -> tuple[Any, ...]:
    """Yield the one row of a DuckDB query."""
    (found,) = duckdb.execute(statement).fetchall()
    return tuple(found)


def table(statement: str) -> pa.Table:
    """Yield the rows of a DuckDB query."""
    found = duckdb.sql(statement)
    assert found is not None
    return found.to_arrow_table()


def environment(name: str, required: tuple[str, ...]) -> Path:
    """Yield the Python of an environment of the peer's own, made the first time it is asked for.

    It is no dependency of the project: it stays in the cache folder, and is made again when what it
    requires changes.
    """
    folder, wanted = CACHE / name, "\n".join(required)
    python, made = folder / "bin" / "python", folder / "required.txt"
    if not made.exists() or made.read_text() != wanted:
        print(f"installing {', '.join(required)} in {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *required], check=True)
        made.write_text(wanted)
    return python
