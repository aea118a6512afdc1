"""A training set: the rows of a spine, each with the features of its keys at its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.settings import Clock, iso, micros_of, time_of_micros
from tidemill.errors import UsageError
from tidemill.features import FeatureView
from tidemill.features.suggestions import did_you_mean
from tidemill.lake.catalog import Lake
from tidemill.training import known_times, served_values
from tidemill.training.answered import Answered, answered
from tidemill.training.answered import known_times as times_answered
from tidemill.training.by_event_time import event_values, gathered_sums
from tidemill.training.known_times import KnownTimes
from tidemill.training.spine import WHERE, Spine, checked

Mode = Literal["event", "served"]
OUTSIDE = "outside_history"
CHOICES = {
    "mode": ("event", "served"),
    "outside": ("error", "null"),
    "duplicates": ("error", "keep"),
}


@dataclass(frozen=True)
class Wanted:
    """What a training set is to hold: the features of views, each with the lake that has it, in a
    mode, and what becomes of rows `outside` the known times, or of the same keys and time."""

    views: Sequence[tuple[Lake, FeatureView]]
    clock: Clock = field(default_factory=Clock)
    mode: str = "event"
    time: str = "timestamp"
    outside: str = "error"
    duplicates: str = "error"

    def check(self) -> None:
        """Raise UsageError for a word that is none of its choices, and for views named twice."""
        for option, choices in CHOICES.items():
            word = getattr(self, option)
            if word not in choices:
                message = f"unknown {option} {word!r}{did_you_mean(word, choices)}"
                raise UsageError(message, where=f"--{option}", expected=" or ".join(choices))
        names = [view.name for _, view in self.views]
        if not names or len(set(names)) < len(names):
            message = f"views are {', '.join(names) or 'none'}"
            raise UsageError(message, where="--view", expected="one or more, each once")


@dataclass(frozen=True)
class _Source:
    """What answers for a view, and for which times: its buckets, or the history of its gold."""

    lake: Lake
    view: FeatureView
    known: KnownTimes
    history: Answered | None

    def values(self, edges: DataFrame, reach: _Reach) -> DataFrame:
        """Return the view's features at the edges."""
        assert reach.first is not None and reach.last is not None
        if self.history is None:
            span = (reach.first, reach.last)
            return event_values.values(self.lake, self.view, edges, *span, reach.keys)
        return served_values.values(
            self.lake, self.view, self.history, edges, reach.last, reach.keys
        )


@dataclass(frozen=True)
class _Reach:
    """The rows of the spine by a view's known times: the first edge and the last of those inside,
    how many are before, after and in a gap, about how many keys there are."""

    first: datetime | None
    last: datetime | None
    before: int
    after: int
    missing: int
    keys: int

    @property
    def outside(self) -> int:
        """How many rows are outside the known times."""
        return self.before + self.after + self.missing


@dataclass(frozen=True)
class TrainingSet:
    """The rows of a training set and how many there are; for each view the times that it could
    answer, and how many rows are outside of them."""

    rows: DataFrame
    count: int
    known: Mapping[str, KnownTimes]
    outside: Mapping[str, int]

    def facts(self, wanted: Wanted) -> dict[str, Any]:
        """Return what a command says of it: `{mode, rows, columns, views}`."""
        views = [
            {
                "view": view,
                "first": iso(known.first),
                "last": iso(known.last),
                "gaps": [[iso(start), iso(end)] for start, end in known.gaps],
                "outside": self.outside[view],
            }
            for view, known in self.known.items()
        ]
        columns = self.rows.columns
        return {"mode": wanted.mode, "rows": self.count, "columns": columns, "views": views}


def training_set(given: DataFrame, wanted: Wanted) -> TrainingSet:
    """Return the rows given, each with the features of the views at its time.

    A view's columns have their names, with the view's in front where views or the spine would have
    one twice; the spine's columns stay. With `outside="null"` the features of a row outside a
    view's known times are null, and `outside_history` names these views. UsageError for a spine, or
    times of it, that cannot be answered.
    """
    wanted.check()
    spine = checked(given, [view for _, view in wanted.views], wanted.time, wanted.duplicates)
    names = _feature_names(spine, wanted)
    rows, names_outside = spine.rows, []
    known: dict[str, KnownTimes] = {}
    outside: dict[str, int] = {}
    for lake, view in wanted.views:
        source = _source(lake, view, wanted)
        edge = _edge(spine, source, wanted.mode)
        reach = _reach(spine, source, edge)
        if reach.outside and wanted.outside == "error":
            raise _outside(spine, source, reach, wanted)
        known[view.name], outside[view.name] = source.known, reach.outside
        names_outside.append(F.when(edge.isNull(), F.lit(view.name)))
        rows = _with_values(rows, source, edge, reach, names[view.name])
    shown = [F.col(f"`{name}`") for name in given.columns]
    shown += [F.col(name) for names_ in names.values() for name in names_.values()]
    if wanted.outside == "null":
        shown.append(F.array_compact(F.array(*names_outside)).alias(OUTSIDE))
    return TrainingSet(rows.select(*shown), spine.count, known, outside)


def _source(lake: Lake, view: FeatureView, wanted: Wanted) -> _Source:
    """Return what answers for a view; UsageError where that holds nothing yet."""
    history = answered(lake, view) if wanted.mode == "served" else None
    known = known_times.of_buckets(lake, view) if wanted.mode == "event" else None
    if history is not None:
        known = times_answered(lake, view, history, wanted.clock)
    if known is None:
        where = lake.tables.of(view).gold.name
        expected = "`tidemill run` first, then a training set"
        raise UsageError("holds nothing yet", where=where, expected=expected)
    return _Source(lake, view, known, history)


def _feature_names(spine: Spine, wanted: Wanted) -> dict[str, dict[str, str]]:
    """Return, by view, the name in the training set of each feature; UsageError for one that is
    there already."""
    all_names = [column.name for _, view in wanted.views for column in view.shown]
    names = {
        view.name: {
            c.name: f"{view.name}_{c.name}" if all_names.count(c.name) > 1 else c.name
            for c in view.shown
        }
        for _, view in wanted.views
    }
    taken = {name.lower(): name for name in spine.rows.columns}
    taken |= {OUTSIDE: OUTSIDE} if wanted.outside == "null" else {}
    for view_name, of_view in names.items():
        for name in of_view.values():
            if name.lower() in taken:
                message = f"column {taken[name.lower()]!r} is also the name of a feature of view "
                expected = "another name for the spine's column"
                raise UsageError(message + view_name, where=WHERE, expected=expected)
            taken[name.lower()] = name
    return names


def _edge(spine: Spine, source: _Source, mode: str) -> Column:
    """Return where a row's features are looked up, in microseconds since 1970: at the edge of its
    time among buckets, at the time itself among answers. Null outside the known times."""
    edge = spine.edge(source.view) if mode == "event" else spine.moment
    return F.when(_is_known(edge, source.known), edge)


def _is_known(edge: Column, known: KnownTimes) -> Column:
    inside = edge.between(micros_of(known.first), micros_of(known.last))
    for start, end in known.gaps:
        inside &= ~((edge >= micros_of(start)) & (edge < micros_of(end)))
    return inside


def _reach(spine: Spine, source: _Source, inside: Column) -> _Reach:
    known, keys = source.known, source.view.keys
    row = spine.rows.agg(
        F.min(inside),
        F.max(inside),
        F.count_if(inside.isNull() & (spine.moment < micros_of(known.first))),
        F.count_if(inside.isNull() & (spine.moment > micros_of(known.last))),
        F.count_if(inside.isNull()),
        F.approx_count_distinct(F.struct(*keys)),
    ).collect()[0]
    first, last = (None if m is None else time_of_micros(m) for m in (row[0], row[1]))
    return _Reach(first, last, row[2], row[3], row[4] - row[2] - row[3], row[5])


def _outside(spine: Spine, source: _Source, reach: _Reach, wanted: Wanted) -> UsageError:
    """Return the error that names what is known, and so the first time that can be answered."""
    known = source.known
    places = {"before": reach.before, "after": reach.after, "in a gap of": reach.missing}
    said = " and ".join(f"{count:,} {place}" for place, count in places.items() if count)
    message = (
        f"{reach.outside:,} of {spine.count:,} rows have a time that {source.view.name} cannot "
    )
    message += f"answer: {said} {known}"
    expected = f"times from {iso(known.first)} to {iso(known.last)}, or --outside null"
    if wanted.mode == "served" and reach.before:
        expected += "; `served_history` in the pipeline keeps what gold answers"
    return UsageError(message, where=WHERE, expected=expected)


def _with_values(
    rows: DataFrame, source: _Source, edge: Column, reach: _Reach, names: Mapping[str, str]
) -> DataFrame:
    """Return the rows with a view's features by their names in the training set."""
    view = source.view
    if reach.first is None:  # every row is outside
        nulls = {names[c.name]: F.lit(None).cast(c.type) for c in view.shown}
        return rows.withColumns(nulls)
    column = f"__edge_{view.name}"
    placed = rows.withColumn(column, edge)
    if source.history is None and reach.last is not None:
        sums = gathered_sums.gathered(source.lake, view, reach.first, reach.last)
        if sums is not None:
            return sums.with_values(placed, column, names)
    edges = placed.where(F.col(column).isNotNull()).select(
        *view.keys, F.col(column).alias("__edge")
    )
    found = source.values(edges.distinct(), reach)
    renamed = found.select(
        *view.keys,
        F.col("__edge").alias(column),
        *(F.col(name).alias(new) for name, new in names.items()),
    )
    return placed.join(renamed, [*view.keys, column], "left")
