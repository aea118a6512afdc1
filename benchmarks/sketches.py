"""What a sketch or a filter costs a key, how far off it is, and what a refresh costs with features
that do not add up.

    generated values ──parts of 60 minutes──► merged ──► bytes, and the error against all the values
    generated events ──load──► 25 h of buckets ──tick──► three lakes in turns, each incremental:
                               features that add up, exact ones that do not, sketches

After every tick every key's count, and a sum or a largest value, are compared with DuckDB's, and
gold with its recompute. Only then are times printed. `--write` puts the tables into
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import sys
import tempfile
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import tick
from pyspark.sql import SparkSession

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock, Place
from tidemill.features import (
    Feature,
    FeatureView,
    approx_distinct,
    bloom,
    contains,
    count,
    cuckoo,
    distinct,
    last,
    max_,
    mean,
    most_frequent,
    quantiles,
    sum_,
)
from tidemill.lake import catalog as lakes
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.open import open_for_writing
from tidemill.lake.session.session import session
from tidemill.operations import reconcile
from tidemill.pipeline.silver import minute_buckets
from tidemill.pipeline.steps import feature_step

START = datetime(2026, 11, 20, 0, 0, tzinfo=timezone.utc)
KEYS = 8  # of which the errors are taken
SIZES = (200, 2_000, 20_000)  # different values of a key
RANKS = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
PROBES = 25_000  # of each key
Values = dict[str, list[tuple[str, float]]]

# -- sizes and errors ----------------------------------------------------------------------------


def sketches(size: int) -> dict[str, Feature]:
    """The features that are measured, by what the table calls them."""
    return {
        "approx_distinct, precision 12": approx_distinct("x"),
        "approx_distinct, precision 14": approx_distinct("x", precision=14).named("finer"),
        "quantiles, k 200": quantiles("d", RANKS),
        "most_frequent": most_frequent("x", 20),
        "bloom, error 0.01": bloom("x", capacity=size, error=0.01),
        "cuckoo, error 0.01": cuckoo("x", capacity=size, error=0.01),
        "distinct (exact)": distinct("x", limit=100_000),
    }


def drawn(size: int) -> Values:
    """Every value of each key once, in any order, and as often again with few that are frequent; no
    two keys have a value in common."""
    rows = duckdb.sql(
        f"""
        SELECT
          'k' || i % {KEYS} AS k,
          'value-' || i % {KEYS} || '-' || CASE WHEN i < {KEYS * size} THEN i // {KEYS}
            ELSE floor({size} * (hash(i) / 2**64) ** 4)::BIGINT END AS x,
          -ln((hash(-i) + 1) / 2**64) AS d
        FROM range({2 * KEYS * size}) AS numbers(i)
        ORDER BY hash(i + 1)
        """
    ).fetchall()
    found: Values = {}
    for key, x, d in rows:
        found.setdefault(key, []).append((x, d))
    return found


def measure(spark: SparkSession, size: int) -> list[list[str]]:
    """Return a row of the table for each sketch: bytes of a minute and of an hour, and its
    error."""
    values, asked = drawn(size), sketches(size)
    rows = [
        (key, x, d, START + timedelta(minutes=n % 60, seconds=1))
        for key, each in values.items()
        for n, (x, d) in enumerate(each)
    ]
    view = FeatureView(
        name="measured",
        keys=["k"],
        event_time="at",
        schema={"k": "string", "x": "string", "d": "double"},
        features=[feature.over("1h") for feature in asked.values()],
    )
    frame = spark.createDataFrame(rows, "k STRING, x STRING, d DOUBLE, at TIMESTAMP")
    buckets = minute_buckets.buckets_of(frame, 0, view).cache()
    shown = [next(c for c in view.shown if c.name.startswith(name_of(f))) for f in asked.values()]
    merged = buckets.groupBy("k").agg(
        *(expr(t.partial.merged(), t.partial.name) for t in terms(shown))
    )
    results = {
        row["k"]: row
        for row in merged.selectExpr(
            "*", *(f"{c.value(lambda t: t.partial.name)} AS {c.name}" for c in shown)
        ).collect()
    }
    of_buckets = buckets.collect()
    found = []
    for name, column in zip(asked, shown, strict=True):
        part = column.terms[0].partial.name
        window = statistics.mean(size_of(row[part]) for row in results.values())
        minute = statistics.mean(size_of(row[part]) for row in of_buckets)
        off = error_of(name, {key: row[column.name] for key, row in results.items()}, values)
        found.append([name, f"{size:,}", f"{minute:,.0f}", f"{window:,.0f}", off])
    buckets.unpersist()
    return found


def name_of(feature: Feature) -> str:
    return f"{feature.stem}_{feature.aggregate}_"


def terms(columns: list[Any]) -> list[Any]:
    return list({term.partial.name: term for c in columns for term in c.terms}.values())


def expr(text: str, name: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(text).alias(name)


def size_of(part: Any) -> int:
    """The bytes of a part's values, as they are before a file packs them."""
    if isinstance(part, bytes | bytearray):
        return len(part)
    if isinstance(part, str):
        return len(part.encode())
    if isinstance(part, list | tuple):
        return sum(map(size_of, part))
    return 8 if isinstance(part, int | float) else 0


def error_of(name: str, found: dict[str, Any], values: Values) -> str:
    """How far off the values of all keys are."""
    if name.startswith(("bloom", "cuckoo")):
        return false_yeses(found, values)
    judge: dict[str, Callable[[Any, list[tuple[str, float]]], float]] = {
        "approx_distinct": lambda one, each: one / len({x for x, _ in each}) - 1,
        "distinct": lambda one, each: one / len({x for x, _ in each}) - 1,
        "quantiles": rank_error,
        "most_frequent": count_error,
    }
    kind = name.split(",")[0].split(" ")[0]
    each = [judge[kind](found[key], values[key]) for key in values]
    if kind.endswith("distinct"):
        return f"{math.sqrt(statistics.mean(e * e for e in each)):.2%} root mean square"
    what = "of rank" if kind == "quantiles" else "of the events"
    return f"{max(each):.2%} {what} at most"


def rank_error(found: list[float], each: list[tuple[str, float]]) -> float:
    ordered = sorted(d for _, d in each)
    places = [bisect_right(ordered, value) / len(ordered) for value in found]
    return max(abs(place - rank) for place, rank in zip(places, RANKS, strict=True))


def count_error(found: list[Any], each: list[tuple[str, float]]) -> float:
    true = Counter(x for x, _ in each)
    return max(abs(one["count"] - true[one["item"]]) for one in found) / len(each)


def false_yeses(found: dict[str, Any], values: Values) -> str:
    wrong = 0
    for key, each in values.items():
        one = found[key] if isinstance(found[key], bytes | bytearray) else quick(found[key])
        if not all(contains(one, x) for x in {x for x, _ in each}):
            sys.exit(f"a filter of {key} says no to a value it was given; no numbers")
        wrong += sum(contains(one, f"other-{key}-{n}") for n in range(PROBES))
    return f"{wrong / (PROBES * len(values)):.2%} false yeses"


def quick(found: Any) -> Any:
    """A Cuckoo filter with its codes as a set, in which Python does not search for long."""
    return (*found[:2], set(found["codes"]))


# -- refreshes -----------------------------------------------------------------------------------

WINDOWS = {"1d": 1440, "1h": 60}
KINDS: dict[str, list[Feature]] = {
    "add up": [count(), sum_("amount", scale=2), mean("amount", scale=2)],
    "exact": [count(), max_("amount"), last("item")],
    "sketches": [count(), max_("amount"), approx_distinct("item"), quantiles("amount")],
}
WITNESS = {"add up": ("amount_sum", "sum(amount::DECIMAL(18, 2))")}
LARGEST = ("amount_max", "max(amount)")


def write_events(folder: Path, events: int, per_tick: int, keys: int, ticks: int) -> None:
    """Write `0.parquet`, 25 hours of events, and a file per tick: the events of a minute."""
    folder.mkdir()
    for batch in range(ticks + 1):
        number, minute = (per_tick, 1500 + batch - 1) if batch else (events, 0)
        spread = f"{minute}" if batch else "floor(u1 * 1500)"
        duckdb.sql(
            f"""
            COPY (
              WITH draws AS (
                SELECT {", ".join(f"hash({batch}000000000 + i * 5 + {n}) / 2**64 AS u{n}" for n in range(5))}
                FROM range({number}) AS numbers(i)
              )
              SELECT
                'p' || floor({keys} * u0 * u0)::BIGINT AS profile_id,
                'item-' || floor(1000 * u2 * u2)::BIGINT AS item,
                floor(u3 * 100000)::BIGINT / 100 AS amount,
                make_timestamptz(
                  ({int(START.timestamp())} + {spread} * 60 + floor(u4 * 60))::BIGINT * 1000000
                ) AS event_timestamp
              FROM draws
            ) TO '{folder}/{batch}.parquet'
            """  # noqa: E501
        )


def open_lake(folder: Path, kind: str) -> Lake:
    view = FeatureView(
        name="bench",
        keys=["profile_id"],
        event_time="event_timestamp",
        schema={"profile_id": "string", "item": "string", "amount": "double"},
        features=[feature.over(*WINDOWS) for feature in KINDS[kind]],
    )
    files: Any = {"kind": "files"}
    definition = PipelineDefinition(
        pipeline="bench", source=files, refresh="incremental", views=(view,)
    )
    place = Place(folder / kind.replace(" ", "_"))
    return open_for_writing(session(), place, definition)


def feed(lake: Lake, folder: Path, batch: int) -> dict[str, float]:
    """Run one batch through the pipeline's own function; yield what it took and changed."""
    lakes.register(lake.spark, lake.place)
    events = lake.spark.read.parquet(f"{folder}/events/{batch}.parquet")
    started = time.monotonic()
    feature_step.feature_batch(events, batch, lake=lake, clock=Clock(), follows="event")
    total = time.monotonic() - started
    told = ledger.commits(lake.spark, "bench_features", 1)[0].ledger or {}
    if batch and told["mode"] != "incremental":
        sys.exit(f"tick {batch} was a {told['mode']}: {told.get('why')}; no times")
    return {"total": total, "diff": told["seconds"]["diff"], "changed": told["changed"]}


def check(lake: Lake, kind: str, folder: Path, batches: int) -> None:
    """Stop when a key is not as DuckDB counts it from the events, or as the recompute has it."""
    column, text = WITNESS.get(kind, LARGEST)
    names = [f"{name}_{window}" for window in WINDOWS for name in ("count", column)]
    found = lake.spark.table("bench_features").select("profile_id", *names).toArrow()  # noqa: F841
    inside = {
        window: f"FILTER (event_timestamp >= as_of - INTERVAL {minutes} MINUTE)"
        for window, minutes in WINDOWS.items()
    }
    wanted = ", ".join(
        f"count(*) {inside[w]} AS count_{w}, {text} {inside[w]} AS {column}_{w}" for w in WINDOWS
    )
    files = [f"{folder}/events/{batch}.parquet" for batch in range(batches + 1)]
    different = " OR ".join(f"coalesce(f.{n}, 0) <> coalesce(w.{n}, 0)" for n in names)
    (row,) = duckdb.sql(
        f"""
        WITH events AS (FROM read_parquet({files})),
        clock AS (
          SELECT date_trunc('minute', max(event_timestamp)) + INTERVAL 1 MINUTE AS as_of FROM events
        ),
        wanted AS (SELECT profile_id, {wanted} FROM events, clock GROUP BY profile_id)
        SELECT count(*) FROM found AS f FULL JOIN wanted AS w USING (profile_id) WHERE {different}
        """
    ).fetchall()
    if row[0] or reconcile.reconcile(lake, lake.pipeline.views[0]).different:
        sys.exit(f"{kind}, tick {batches}: {row[0]} keys are not what DuckDB counts; no times")


def refreshes(folder: Path, ticks: int) -> dict[str, list[dict[str, float]]]:
    """Return the warm ticks of each kind; the load and one tick come before them."""
    opened = {kind: open_lake(folder, kind) for kind in KINDS}
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for batch in range(ticks + 2):
        for kind, lake in opened.items():
            one = feed(lake, folder, batch)
            check(lake, kind, folder, batch)
            print(f"tick {batch} of {kind}: equal to DuckDB", file=sys.stderr)
            if batch > 1:
                found[kind].append(one)
    return found


# -- report --------------------------------------------------------------------------------------


def report(
    measured: list[list[str]], found: dict[str, list[dict[str, float]]], asked: argparse.Namespace
) -> str:
    """Return what was measured, as Markdown."""
    ticks = next(iter(found.values()))
    told = {"total": ("whole tick", "{:.2f} s"), "diff": ("- query and diff", "{:.2f} s")}
    told["changed"] = ("keys changed", "{:,.0f}")
    lines = [
        f"Of {KEYS} keys, each with its different values in 60 minute buckets, all twice.",
        "",
        "| | values | bytes of a minute | bytes of the hour | error |",
        "|---|---:|---:|---:|---:|",
        *(f"| {' | '.join(row)} |" for row in measured),
        "",
        f"{asked.events:,} events over 25 h, {asked.keys:,} possible keys, {asked.per_tick:,} "
        f"events a tick, windows {', '.join(WINDOWS)}; {len(ticks)} warm ticks of each.",
        "",
        tick.machine(),
        "",
        "| warm tick, median (least to most) | add up | exact, do not | ratio | sketches | ratio |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, (what, form) in told.items():
        cells = [spread([one[name] for one in each], form) for each in found.values()]
        base = [one[name] for one in found["add up"]]
        ratios = [
            f"{statistics.median(o[name] / b for o, b in zip(found[kind], base, strict=True)):.1f}x"
            for kind in ("exact", "sketches")
        ]
        lines.append(
            f"| {what} | {cells[0]} | {cells[1]} | {ratios[0]} | {cells[2]} | {ratios[1]} |"
        )
    return "\n".join(lines) + "\n"


def spread(values: list[float], form: str) -> str:
    middle, least, most = map(form.format, (statistics.median(values), min(values), max(values)))
    return middle if least == most else f"{middle} ({least} to {most})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--events", type=int, default=100_000)
    options.add_argument("--per-tick", type=int, default=1_000)
    options.add_argument("--keys", type=int, default=2_000)
    options.add_argument("--ticks", type=int, default=5, help="warm ticks, 5 or more")
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    asked = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tidemill-sketches-"))
    try:
        write_events(folder / "events", asked.events, asked.per_tick, asked.keys, asked.ticks + 1)
        found = refreshes(folder, asked.ticks)
        measured = [row for size in SIZES for row in measure(session(), size)]
        measured.sort(key=lambda row: list(sketches(1)).index(row[0]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table := report(measured, found, asked))
    if asked.write:
        tick.write(table, "sketches")


if __name__ == "__main__":
    main()
