"""Feast's tiling: is it exact? Sum, count, min and max of an amount, against DuckDB's own.

    python benchmarks/peers/feast_tiling.py --events DIR --ticks N --out OUT

Feast's engines for Spark and Ray give all events to three functions of `feast.aggregation.tiling`,
in pandas: the first makes tiles per key, cumulative for sum and count, by hop for min and max; the
second makes windows of them; the third keeps each key's newest. They are called here in that order,
over the same events, and what they yield is compared with a count straight from the events. No
times: only whether it is equal. The name is not feast.py, as that would hide the package.

The amount is drawn from a hash of the event: whole numbers; the same in hundredths (DOUBLE); and,
for sums, 1e16 for one event in ten and 1 for the others (DOUBLE).

Feast takes a row in Python per key, window and hop, each looking through all tiles of its key, so
it runs on some of the keys, drawn by a hash, and on that of the newest event, whose tile is the
newest. `--hops` are minutes; 5 is Feast's default.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

import peer

REQUIRED = ("feast==0.67.0", "duckdb==2.0.0", "psutil", "pytz")
WINDOWS = {"1h": timedelta(hours=1), "12h": timedelta(hours=12), "1d": timedelta(days=1)}
KEYS = ["profile_id", "gti"]
# Feast's function and column, and DuckDB's exact value: sums by whole numbers, rounded once.
AGGREGATES = {
    "count": ("count", "points", "count(points)"),
    "sum": ("sum", "points", "sum(points)"),
    "sum of hundredths": ("sum", "hundredths", "sum(points) / 100"),
    "sum of unlike sizes": ("sum", "unlike", "CAST(sum(CAST(unlike AS HUGEINT)) AS DOUBLE)"),
    "min": ("min", "points", "min(points)"),
    "max": ("max", "points", "max(points)"),
}

Rows = dict[tuple[str, str], dict[str, Any]]  # values by key


def load(folder: Any, ticks: int, keys: int) -> datetime:
    """Make a table of the events of some keys, with what is added up; return the newest's time."""
    import duckdb

    files = [f"{folder}/{batch}.parquet" for batch in range(ticks + 1)]
    duckdb.sql("SET TimeZone = 'UTC'")
    duckdb.sql(
        f"""
        CREATE TABLE events AS
        WITH
          every AS (FROM read_parquet({files})),
          newest AS (SELECT {", ".join(KEYS)} FROM every ORDER BY event_timestamp DESC LIMIT 1),
          drawn AS (
            SELECT {", ".join(KEYS)} FROM every GROUP BY {", ".join(KEYS)}
            ORDER BY hash({", ".join(KEYS)}) LIMIT {keys - 1}
          )
        SELECT *, (hash(profile_id, gti, event_timestamp, event_type) % 10000)::BIGINT AS points,
          points / 100 AS hundredths, CASE WHEN points < 1000 THEN 1e16 ELSE 1.0 END AS unlike
        FROM every SEMI JOIN (FROM newest UNION FROM drawn) USING ({", ".join(KEYS)})
        """
    )
    newest: datetime = duckdb.execute("SELECT max(event_timestamp) FROM events").fetchall()[0][0]
    return newest


def tiled(window: timedelta, hop: timedelta) -> Rows:
    """Return what Feast tells of each key's newest window."""
    import duckdb
    from feast.aggregation import Aggregation, tiling  # type: ignore[import-not-found]

    wanted = [
        Aggregation(column=column, function=function, time_window=window, name=name)
        for name, (function, column, _) in AGGREGATES.items()
    ]
    frame = duckdb.table("events").df()
    tiles = tiling.apply_sawtooth_window_tiling(
        frame, wanted, KEYS, "event_timestamp", window_size=window, hop_size=hop
    )
    windowed = tiling.convert_cumulative_to_windowed(
        tiles, KEYS, "event_timestamp", window_size=window, aggregations=wanted
    )
    newest = tiling.deduplicate_keep_latest(windowed, KEYS, "event_timestamp")
    return {(row["profile_id"], row["gti"]): row for row in newest.to_dict("records")}


def counted(window: timedelta, as_of: datetime) -> Rows:
    """Return what the events say of each key's window that ends at as_of."""
    import duckdb

    keys = ", ".join(KEYS)
    values = ", ".join(
        f'{exact} AS "{name}", {function}({column}) AS "plain {name}"'
        for name, (function, column, exact) in AGGREGATES.items()
    )
    found = duckdb.execute(
        f"""
        WITH inside AS (
          FROM events WHERE event_timestamp >= $begin AND event_timestamp < $end
        )
        SELECT {keys}, {values}
        FROM (SELECT DISTINCT {keys} FROM events) LEFT JOIN inside USING ({keys})
        GROUP BY {keys}
        """,
        {"begin": as_of - window, "end": as_of},
    )
    names = [column[0] for column in found.description]
    rows = (dict(zip(names, row, strict=True)) for row in found.fetchall())
    return {(row["profile_id"], row["gti"]): row for row in rows}


def same(name: str, theirs: Any, ours: Any) -> bool:
    """Return whether two values are equal; of an empty window, a sum may be 0 or nothing."""
    theirs = None if theirs != theirs else theirs  # NaN
    if name.startswith(("sum", "count")):
        theirs, ours = theirs or 0, ours or 0
    return bool(theirs == ours)


def distance(theirs: Any, ours: Any) -> float:
    """Return how far apart two values are, in parts of ours."""
    return float(abs((theirs or 0) - (ours or 0)) / max(abs(ours or 0), 1))


def compared(hop: int, as_of: datetime) -> Iterator[dict[str, Any]]:
    """Yield a row for each window and aggregate: how many keys are equal at as_of and, where it is
    later, at the end of Feast's newest tile."""
    step = timedelta(minutes=hop)
    end = as_of + (datetime.fromtimestamp(0, as_of.tzinfo) - as_of) % step
    for window, length in WINDOWS.items():
        theirs = tiled(length, step)
        yield from equal(f"hop {hop} min", window, theirs, counted(length, as_of))
        if end > as_of:
            by = f"hop {hop} min, at its newest tile's end"
            yield from equal(by, window, theirs, counted(length, end))


def plain(as_of: datetime) -> Iterator[dict[str, Any]]:
    """Yield the same for DuckDB's own sums of doubles, as a yardstick."""
    for window, length in WINDOWS.items():
        ours = counted(length, as_of)
        sums = [name for name in AGGREGATES if name.startswith("sum of")]
        summed = {key: {name: row[f"plain {name}"] for name in sums} for key, row in ours.items()}
        yield from equal("a plain sum", window, summed, ours)


def equal(by: str, window: str, theirs: Rows, ours: Rows) -> Iterator[dict[str, Any]]:
    """Yield a row for each aggregate: how many keys are equal, and the one farthest off."""
    for name in AGGREGATES:
        if name not in next(iter(theirs.values())):
            continue
        different = [key for key in ours if not same(name, theirs[key][name], ours[key][name])]
        example = ""
        if different:
            key = max(different, key=lambda key: distance(theirs[key][name], ours[key][name]))
            example = f"{'/'.join(key)}: {theirs[key][name]}, not {ours[key][name]}"
        yield {
            "by": by,
            "window": window,
            "aggregate": name,
            "keys": len(ours),
            "equal": len(ours) - len(different),
            "different": len(different),
            "example": example,
        }


def table(rows: list[dict[str, Any]]) -> str:
    """Return Markdown: how many keys are equal in each window, a line for each aggregate."""
    lines = [
        f"| equal keys | aggregate | {' | '.join(WINDOWS)} | a difference |",
        f"|---|---|{'---:|' * len(WINDOWS)}---|",
    ]
    for by, aggregate in dict.fromkeys((row["by"], row["aggregate"]) for row in rows):
        told = [row for row in rows if (row["by"], row["aggregate"]) == (by, aggregate)]
        cells = " | ".join(f"{row['equal']} of {row['keys']}" for row in told)
        example = next((row["example"] for row in told if row["example"]), "")
        lines.append(f"| {by} | {aggregate} | {cells} | {example} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    options = peer.arguments(__doc__ or "")
    options.add_argument("--keys", type=int, default=24, help="how many keys")
    options.add_argument("--hops", type=int, nargs="+", default=[1, 5], help="minutes")
    asked = options.parse_args()
    if not importlib.util.find_spec("feast"):  # not in the environment of its own yet
        python = peer.environment("feast", REQUIRED)
        raise SystemExit(subprocess.run([python, *sys.argv], check=False).returncode)
    newest = load(asked.events, asked.ticks, asked.keys)
    as_of = newest.replace(second=0, microsecond=0) + timedelta(minutes=1)
    rows = [*chain.from_iterable(compared(hop, as_of) for hop in asked.hops), *plain(as_of)]
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "exactness.json").write_text(json.dumps(rows, indent=1))
    (asked.out / "exactness.md").write_text(table(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
