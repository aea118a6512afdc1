"""Debezium records made by hand, and what a dimension should hold after them, in plain Python.

Shares no code with the package: the newest change of a key is the one with the greatest lsn, a
change of keys deletes the old key, and a version holds from its time until that of the next one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

START = datetime(2026, 11, 20, 8, tzinfo=timezone.utc)
Row = dict[str, Any]
TOMBSTONE = None


@dataclass(frozen=True)
class Change:
    """A change of a row, committed at a place of the log: its rows before and after."""

    lsn: int
    at: datetime
    before: Row | None
    after: Row | None
    op: str

    def record(self, wrapped: bool = False) -> str:
        """The change as Debezium's connector for PostgreSQL writes it."""
        envelope = {
            "before": self.before,
            "after": self.after,
            "source": {
                "connector": "postgresql",
                "lsn": self.lsn,
                "txId": self.lsn // 10,
                "ts_ms": millis(self.at),
            },
            "op": self.op,
            "ts_ms": millis(self.at) + 250,
        }
        return json.dumps(
            {"schema": {"type": "struct"}, "payload": envelope} if wrapped else envelope
        )


def millis(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=ms)


def customer(number: int, segment: str | None = "basic", credit: int = 0) -> Row:
    return {"customer_id": f"c{number}", "segment": segment, "credit": credit, "unused": [1]}


@dataclass
class Database:
    """A table of customers to which random transactions write, some of them interleaved: the log
    holds their changes in the order of their commits, each at the place where it was made."""

    seed: int
    keys: int = 8
    rows: dict[str, Row] = field(default_factory=dict)
    lsn: int = 1000
    at: datetime = START

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def snapshot(self) -> list[Change]:
        """The first rows, read at one place."""
        for number in range(0, self.keys, 2):
            self.rows[f"c{number}"] = customer(number)
        return [Change(self.lsn, self.at, None, dict(row), "r") for row in self.rows.values()]

    def transactions(self, count: int) -> Iterator[list[Change]]:
        """Transactions, each with the changes that it made, in the order of their commits."""
        for _ in range(count):
            self.at += timedelta(seconds=self.random.choice((0, 1, 30, 900)))
            yield [c for _ in range(self.random.randint(1, 3)) for c in self._change()]

    def _change(self) -> list[Change]:
        self.lsn += self.random.randint(1, 40)
        number = self.random.randrange(self.keys)
        key = f"c{number}"
        row = customer(
            number, self.random.choice(("basic", "gold", None)), self.random.randrange(1000)
        )
        if key not in self.rows:
            self.rows[key] = row
            return [Change(self.lsn, self.at, None, row, "c")]
        old = self.rows[key]
        if self.random.random() < 0.2:
            del self.rows[key]
            return [Change(self.lsn, self.at, {"customer_id": key}, None, "d")]
        free = [n for n in range(self.keys) if f"c{n}" not in self.rows]
        if free and self.random.random() < 0.2:
            moved = {**row, "customer_id": f"c{free[0]}"}
            del self.rows[key]
            self.rows[moved["customer_id"]] = moved
            if self.random.random() < 0.5:  # as Debezium tells it, or a connector without keys
                return [
                    Change(self.lsn, self.at, {"customer_id": key}, None, "d"),
                    Change(self.lsn, self.at, None, moved, "c"),
                ]
            return [Change(self.lsn, self.at, {"customer_id": key}, moved, "u")]
        self.rows[key] = row
        return [Change(self.lsn, self.at, old if self.random.random() < 0.5 else None, row, "u")]


def by_key(changes: Iterable[Change]) -> dict[str, list[tuple[int, datetime, Row | None]]]:
    """Of each key its versions in the order of the log: place, time, the row, None where it was
    deleted."""
    versions: dict[str, dict[int, tuple[int, datetime, Row | None]]] = {}
    for change in changes:
        after = change.after and change.after["customer_id"]
        before = change.before and change.before["customer_id"]
        if before is not None and before != after:
            versions.setdefault(before, {}).setdefault(change.lsn, (change.lsn, change.at, None))
        if after is not None:
            row = {name: change.after[name] for name in ("segment", "credit")}
            versions.setdefault(after, {})[change.lsn] = (change.lsn, change.at, row)
    return {key: [of[lsn] for lsn in sorted(of)] for key, of in versions.items()}


def newest(changes: Iterable[Change]) -> dict[str, Row]:
    """What each key is at the end."""
    return {key: of[-1][2] for key, of in by_key(changes).items() if of[-1][2] is not None}


def history(changes: Iterable[Change]) -> set[tuple]:
    """Every version of every key that held in some time: key, row, from, to."""
    held = set()
    for key, versions in by_key(changes).items():
        begun: list[datetime] = []
        for _, at, _ in versions:
            begun.append(max([at, *begun[-1:]]))
        for place, (_, _, row) in enumerate(versions):
            end = begun[place + 1] if place + 1 < len(versions) else None
            if begun[place] != end and row is not None:
                held.add((key, row["segment"], row["credit"], begun[place], end))
    return held


def shuffled(changes: Sequence[Change], seed: int) -> list[str | None]:
    """The records of changes in any order, some of them twice, with tombstones between them."""
    draw = random.Random(seed)
    records: list[str | None] = [change.record(draw.random() < 0.3) for change in changes]
    records += [draw.choice(records) for _ in range(len(records) // 5)] + [TOMBSTONE, "null"]
    draw.shuffle(records)
    return records


def split(records: Sequence[str | None], parts: int, seed: int) -> list[list[str | None]]:
    """The records in so many batches of any size."""
    draw = random.Random(seed)
    cuts = sorted(draw.randrange(len(records) + 1) for _ in range(parts - 1))
    return [list(records[a:b]) for a, b in zip([0, *cuts], [*cuts, len(records)], strict=True)]
