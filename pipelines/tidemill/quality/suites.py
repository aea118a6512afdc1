"""What the gate asks of a pipeline's tables: frames, and what is expected of each.

    <pipeline>_events     the rules that a typed row can break; each record once      recent rows
    <view>_buckets        keys are there, counts are not negative                     recent rows
    <view>_features       one row per keys; a longer window holds the shorter one     all rows
    <pipeline>            fresh, as many events an hour as usual, reconcile is 0      one row

All of it follows from the declaration: what a partial, a value or a longer window can be is asked
of the aggregate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.settings import Clock
from tidemill.features import FeatureView
from tidemill.features.columns import Column
from tidemill.features.windows import HOUR, duration
from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.operations import reconcile
from tidemill.pipeline.silver import minute_buckets
from tidemill.quality.expectations import Expectation, event_suite, gx, of_events

EVENTS_PER_HOUR = "events_per_hour"
_ISO = "yyyy-MM-dd'T'HH:mm:ss'Z'"  # as text: Great Expectations collects it as an example
NEVER = 10**9  # seconds behind, of a gold that was never refreshed


@dataclass(frozen=True)
class Asset:
    """A frame to validate: what is expected of it, and by which columns its rows are told."""

    name: str
    frame: DataFrame
    expectations: Sequence[Expectation]
    key: tuple[str, ...]


def assets(lake: Lake, clock: Clock, earlier: Sequence[float]) -> Iterator[Asset]:
    """Yield what is validated; `earlier` are the events an hour of earlier runs."""
    pipeline = lake.pipeline
    held = {view.name: minute_buckets.bucketed(lake, view) for view in pipeline.views}
    newest = max(filter(None, (state.newest for state in held.values())), default=None)
    events = _recent(lake, lake.tables.events.name, "event_hour", newest)
    once = _expect("ColumnValuesToBeUnique", "record_id:once", column="record_id")
    suite = [*event_suite(pipeline, lake.longer), once]
    yield Asset(lake.tables.events.name, of_events(events, pipeline), suite, ("record_id",))
    for view in pipeline.views:
        yield _of_buckets(lake, view, newest)
        yield _of_gold(lake, view)
    yield _of_pipeline(lake, clock, events, earlier, held)


def _recent(lake: Lake, table: str, hour: str, newest: datetime | None) -> DataFrame:
    """Return the rows of a table from the hours that the gate reads; all where none is newest."""
    rows = lake.spark.table(table)
    if newest is None:
        return rows
    return rows.where(F.col(hour) >= times.at(newest - duration(lake.pipeline.quality.gate.recent)))


def _expect(what: str, check: str, **words: Any) -> Expectation:
    return getattr(gx().expectations, f"Expect{what}")(meta={"reason": check}, **words)


def _of_keys(view: FeatureView) -> Iterator[Expectation]:
    for key in view.keys:
        yield _expect("ColumnValuesToNotBeNull", f"missing:{key}", column=key)


def _not_below(column: str, least: int) -> Expectation:
    return _expect("ColumnValuesToBeBetween", f"below:{column}", column=column, min_value=least)


def _of_buckets(lake: Lake, view: FeatureView, newest: datetime | None) -> Asset:
    table = lake.tables.of(view).buckets.name
    counts = {p.name: p.part.least for p in view.partials if p.part.least is not None}
    suite = [*_of_keys(view), *(_not_below(name, least) for name, least in counts.items())]
    key = (*view.keys, "bucket_start", "batch")
    frame = _recent(lake, table, "bucket_hour", newest).select(*key, *counts)
    frame = frame.withColumn("bucket_start", F.date_format("bucket_start", _ISO))
    return Asset(table, frame, suite, key)


def _of_gold(lake: Lake, view: FeatureView) -> Asset:
    table, least = lake.tables.of(view).gold.name, {}
    pairs = list(nested(view)) if lake.pipeline.quality.gate.nested_windows else []
    for column in view.shown:
        if column.least is not None:
            least[column.name] = column.least
    suite = [*_of_keys(view), _unique(view.keys)]
    suite += [_not_below(name, value) for name, value in least.items()]
    for more, less in pairs:
        suite.append(
            _expect(
                "ColumnPairValuesAToBeGreaterThanB",
                f"nested:{less.name}",
                column_A=more.name,
                column_B=less.name,
                or_equal=True,
                ignore_row_if="either_value_is_missing",
            )
        )
    read = dict.fromkeys([*least, *(column.name for pair in pairs for column in pair)])
    frame = lake.spark.table(table).select(*view.keys, *read)
    return Asset(table, frame, suite, view.keys)


def _unique(keys: tuple[str, ...]) -> Expectation:
    if len(keys) == 1:
        return _expect("ColumnValuesToBeUnique", "keys:once", column=keys[0])
    return _expect("CompoundColumnsToBeUnique", "keys:once", column_list=[*keys])


def nested(view: FeatureView) -> Iterator[tuple[Column, Column]]:
    """Yield the pairs of columns of which the first is never below the second: one feature, over a
    window and over the next longer one that ends at the same time."""
    groups: dict[tuple[str, timedelta], list[Column]] = {}
    for column in view.shown:
        if column.nested and column.window.period is None:
            stem = column.name.removesuffix(column.window.text)
            groups.setdefault((stem, column.window.offset), []).append(column)
    for columns in groups.values():
        for longer, shorter in pairwise(sorted(columns, key=lambda c: -c.window.length)):
            yield (longer, shorter) if longer.nested == "grows" else (shorter, longer)


def _of_pipeline(
    lake: Lake,
    clock: Clock,
    events: DataFrame,
    earlier: Sequence[float],
    held: Mapping[str, minute_buckets.Bucketed],
) -> Asset:
    """Return the asset of what one number says of the whole pipeline; `held` is what the buckets of
    each view held when the gate began."""
    gate, facts, suite = lake.pipeline.quality.gate, {}, []
    facts[EVENTS_PER_HOUR] = _per_hour(events)
    suite.append(_usual(earlier, gate.drift))
    for view in lake.pipeline.views:
        if gate.freshness is not None:
            state = held[view.name]
            facts[name := f"{view.name}_seconds_behind"] = _behind(lake, view, state, clock)
            most = duration(gate.freshness).total_seconds()
            suite.append(_at_most(f"freshness:{view.name}", name, most))
        if gate.reconcile:
            facts[name := f"{view.name}_different"] = float(
                reconcile.reconcile(lake, view).different
            )
            suite.append(_at_most(f"reconcile:{view.name}", name, 0))
    schema = ", ".join(f"{name} DOUBLE" for name in facts)
    frame = lake.spark.createDataFrame([tuple(facts.values())], schema)
    return Asset(lake.pipeline.pipeline, frame, suite, ())


def _at_most(check: str, column: str, most: float) -> Expectation:
    return _expect("ColumnMaxToBeBetween", check, column=column, max_value=most)


def _usual(earlier: Sequence[float], drift: float | None) -> Expectation:
    """Return what is expected of the number of events: near the median of earlier runs, anything
    where there is none."""
    low, high = 0.0, None
    if earlier and drift is not None:
        usual = median(earlier)
        low, high = max(0.0, usual * (1 - drift)), usual * (1 + drift)
    words = {"column": EVENTS_PER_HOUR, "min_value": low, "max_value": high}
    return _expect("ColumnMaxToBeBetween", EVENTS_PER_HOUR, **words)


def _per_hour(events: DataFrame) -> float:
    """Return how many events there are an hour, from the oldest hour read to the newest."""
    hours = F.unix_seconds(F.max("event_hour")) - F.unix_seconds(F.min("event_hour"))
    count, seconds = events.agg(F.count("*"), hours).collect()[0]
    return float(count / (seconds / HOUR.total_seconds() + 1)) if count else 0.0


def _behind(lake: Lake, view: FeatureView, state: minute_buckets.Bucketed, clock: Clock) -> float:
    """Return by how many seconds gold is behind the newest event, or by the wall clock behind
    now."""
    end = minute_buckets.event_as_of(state, view)
    if end is None:
        return 0.0
    if lake.pipeline.clock == "wall":
        end = max(end, clock.end_of(view.bucket_length))
    as_of = lake.gold_state(view).as_of
    return float(NEVER) if as_of is None else max(0.0, (end - as_of).total_seconds())
