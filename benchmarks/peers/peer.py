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
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).parents[1]))  # for tick and measuring

from measuring import MIB, metered

CACHE = Path.home() / ".cache" / "tidemill-benchmarks"


@dataclass(frozen=True)
class Part:
    """What a peer counts: these columns, of the keys for which `keys` (SQL) holds."""

    columns: list[str]
    keys: str = "true"

    def write(self, out: Path) -> None:
        (out / "part.json").write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, out: Path, columns: list[str]) -> Part:
        """Return the part that the peer told of, else all."""
        path = out / "part.json"
        return cls(**json.loads(path.read_text())) if path.exists() else cls(columns)


class Peer(Protocol):
    """An engine with the events of the batches so far."""

    def bring(self, batch: int) -> dict[str, Any]:
        """Bring the result up to date with one more batch; return more to tell of it."""

    def result(self, batch: int) -> pa.Table:
        """Return the features as they stand, `profile_id`, `gti` and counts."""


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
            with metered() as used:
                started = time.monotonic()
                more = peer.bring(batch)
                seconds = time.monotonic() - started
            memory = round(used.memory * MIB)
            told = {"tick": batch, "seconds": seconds, "cpu": used.cpu, "memory": memory}
            lines.write(json.dumps({**told, "note": "", **more}) + "\n")
            lines.flush()
            pq.write_table(peer.result(batch), out / f"{batch}.parquet")


def row(statement: str) -> tuple[Any, ...]:
    """Return the one row of a DuckDB query."""
    (found,) = duckdb.execute(statement).fetchall()
    return tuple(found)


def table(statement: str) -> pa.Table:
    """Return the rows of a DuckDB query."""
    found = duckdb.sql(statement)
    assert found is not None
    return found.to_arrow_table()


def environment(name: str, required: tuple[str, ...]) -> Path:
    """Return the Python of an environment of the peer's own, made the first time it is asked for.

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
