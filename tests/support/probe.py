"""A table of awkward values, written without Spark, in a lake that is nothing else.

Null in every column, both ends of numbers, halves, letters beyond ASCII, times before 1970, at the
ends of months and hours, and where clocks go back.
"""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from tidemill.lake.catalog import MARKER
from tidemill.lake.tables import FORMAT

UTC = timezone.utc
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "whole": pa.int64(),
        "small": pa.int32(),
        "number": pa.float64(),
        "price": pa.decimal128(10, 2),
        "word": pa.string(),
        "moment": pa.timestamp("us", tz="UTC"),
        "day": pa.date32(),
        "flag": pa.bool_(),
        "tags": pa.list_(pa.string()),
        "seconds": pa.map_(pa.string(), pa.float64()),
        "nested": pa.struct({"x": pa.int64(), "y": pa.string()}),
        "raw": pa.binary(),
        "said": pa.string(),
    }
)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


ROWS = [
    (1, 7, 2, 0.5, "1.50", "a", "2026-11-20T10:00:00", "2026-11-20", True, ["x", "y"], "a"),
    (2, -7, 2, 2.675, "-1.50", "B", "2026-10-25T00:30:00.000001", "2026-10-25", False, [], "b"),
    (3, 7, -2, -2.5, "0.00", "ä", "2026-10-25T01:30:00", "2026-10-31", None, ["x"], "c"),
    (4, 0, 3, 1e-7, "99999999.99", "", "1969-12-31T23:59:59.500000", "1969-12-31", True, None, "a"),
    (
        5,
        2**53 + 1,
        1,
        12345678.125,
        None,
        "a%b",
        "2024-02-29T23:59:59.999999",
        "2024-02-29",
        True,
        ["z"],
        "b",
    ),
    (6, None, None, None, None, None, None, None, None, None, None),
    (7, 7, 5, -0.0, "1.50", "a_b", "2026-11-20T10:59:59", "2026-12-31", False, ["x", None], "a"),
    (8, 100, 7, 1e9 / 3, "3.33", "Zz", "2027-01-01T00:00:00", "2027-01-01", True, ["ü"], "c"),
    (9, 3, 3, 0.1 + 0.2, "2.00", " a", "2026-03-29T01:00:00", "2026-03-29", False, ["x", "x"], "a"),
]
SAID = [
    '{"mode": "merge", "n": 3, "o": {"a": 1, "b": [1, 2]}, "z": null}',
    '{"mode": "", "n": -12}',
    "{}",
    None,
    '{"mode": "a b", "n": 900719925474099}',
    None,
    '{"n": 0, "o": {}}',
    '{"mode": "\\u00e4"}',
    '{"mode": null, "n": 1}',
]


def make(root: Path) -> Path:
    """Make the lake with its one table, `probe`, and return its folder."""
    root.mkdir(parents=True)
    (root / MARKER).write_text(json.dumps({"format": FORMAT}) + "\n", encoding="utf-8")
    rows = []
    for row, said in zip(ROWS, SAID, strict=True):
        id_, whole, small, number, price, word, moment, day, flag, tags, raw = row
        rows.append(
            {
                "id": id_,
                "whole": whole,
                "small": small,
                "number": number,
                "price": price and Decimal(price),
                "word": word,
                "moment": moment and _moment(moment),
                "day": day and date.fromisoformat(day),
                "flag": flag,
                "tags": tags,
                "seconds": None if number is None else [("merge", number), ("read", 0.25)],
                "nested": None if word is None else {"x": whole, "y": word},
                "raw": raw and raw.encode(),
                "said": said,
            }
        )
    half = pa.Table.from_pylist(rows[:5], schema=SCHEMA)
    write_deltalake(str(root / "probe"), half)
    rest = pa.Table.from_pylist(rows[5:], schema=SCHEMA)
    write_deltalake(str(root / "probe"), rest, mode="append")
    return root
