"""A training set: the rows of a spine, each with the features of its keys at its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.settings import iso
from tidemill.errors import UsageError
from tidemill.features import FeatureView
from tidemill.features.suggestions import did_you_mean
from tidemill.lake.catalog import Lake
from tidemill.training import event_values, known_times, served_values
from tidemill.training.known_times import KnownTimes, micros_of, time_of
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


def training_set(given: DataFrame, wanted: Wanted) -> DataFrame:
    """Return the rows given, each with the features of the views at its time.

    A view's columns have their names, with the view's in front where views or the spine would have
    one twice; the spine's columns stay. With `outside="null"` the features of a row outside a
    view's known times are null, and `outside_history` names these views. UsageError for a spine, or
    times of it, that cannot be answered.
    """
    wanted.check()
    spine = checked(given, [view for _, view in wanted.views], wanted.time, wanted.duplicates)
    names = _feature_names(spine, wanted)
    rows, outside = spine.rows, []
    for lake, view in wanted.views:
        known = _known(lake, view, wanted)
        edge = _edge(spine, view, known, wanted.mode)
        reach = _reach(spine, view, known, edge)
        if reach.outside and wanted.outside == "error":
            raise _outside(spine, view, known, reach, wanted)
        outside.append(F.when(edge.isNull(), F.lit(view.name)))
        rows = _with_values(rows, lake, view, edge, reach, wanted, names[view.name])
    shown = [F.col(f"`{name}`") for name in given.columns]
    shown += [F.col(name) for names_ in names.values() for name in names_.values()]
    if wanted.outside == "null":
        shown.append(F.array_compact(F.array(*outside)).alias(OUTSIDE))
    return rows.select(*shown)


def facts(frame: DataFrame, wanted: Wanted) -> dict[str, Any]:
    """Return what a command says of a training set beside its rows: columns and known times."""
    return {
        "mode": wanted.mode,
        "views": [
            {"view": view.name, "known": str(_known(lake, view, wanted))}
            for lake, view in wanted.views
        ],
        "columns": frame.columns,
    }


def _known(lake: Lake, view: FeatureView, wanted: Wanted) -> KnownTimes:
    """Return the times that the mode can answer; UsageError where there are none."""
    of_mode = known_times.of_buckets if wanted.mode == "event" else served_values.known
    known = of_mode(lake, view)
    if known is None:
        message = "holds nothing yet"
        where = lake.tables.of(view).gold.name
        raise UsageError(message, where=where, expected="`tidemill run` first, then a training set")
    return known


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


def _edge(spine: Spine, view: FeatureView, known: KnownTimes, mode: str) -> Column:
    """Return where a row's features are looked up, in microseconds since 1970: at the edge of its
    time among buckets, at the time itself among answers. Null outside the known times."""
    edge = spine.edge(view) if mode == "event" else spine.moment
    return F.when(_is_known(edge, known), edge)


def _is_known(edge: Column, known: KnownTimes) -> Column:
    inside = edge.between(micros_of(known.first), micros_of(known.last))
    for start, end in known.gaps:
        inside &= ~((edge >= micros_of(start)) & (edge < micros_of(end)))
    return inside


def _reach(spine: Spine, view: FeatureView, known: KnownTimes, inside: Column) -> _Reach:
    row = spine.rows.agg(
        F.min(inside),
        F.max(inside),
        F.count_if(inside.isNull() & (spine.moment < micros_of(known.first))),
        F.count_if(inside.isNull() & (spine.moment > micros_of(known.last))),
        F.count_if(inside.isNull()),
        F.approx_count_distinct(F.struct(*view.keys)),
    ).collect()[0]
    first, last = (None if m is None else time_of(m) for m in (row[0], row[1]))
    return _Reach(first, last, row[2], row[3], row[4] - row[2] - row[3], row[5])


def _outside(
    spine: Spine, view: FeatureView, known: KnownTimes, reach: _Reach, wanted: Wanted
) -> UsageError:
    """Return the error that names what is known, and so the first time that can be answered."""
    places = {"before": reach.before, "after": reach.after, "in a gap of": reach.missing}
    said = " and ".join(f"{count:,} {place}" for place, count in places.items() if count)
    message = f"{reach.outside:,} of {spine.count:,} rows are outside what {view.name} can answer: "
    message += f"{said} {known}"
    expected = f"times from {iso(known.first)} on, or --outside null"
    if wanted.mode == "served" and reach.before:
        expected += "; `served_history` in the pipeline keeps what gold answers"
    return UsageError(message, where=WHERE, expected=expected)


def _with_values(
    rows: DataFrame,
    lake: Lake,
    view: FeatureView,
    edge: Column,
    reach: _Reach,
    wanted: Wanted,
    names: dict[str, str],
) -> DataFrame:
    """Return the rows with a view's features by their names in the training set."""
    if reach.first is None or reach.last is None:  # every row is outside
        nulls = {names[c.name]: F.lit(None).cast(c.type) for c in view.shown}
        return rows.withColumns(nulls)
    column = f"__edge_{view.name}"
    placed = rows.withColumn(column, edge)
    edges = placed.where(F.col(column).isNotNull()).select(
        *view.keys, F.col(column).alias("__edge")
    )
    of_mode = event_values.values if wanted.mode == "event" else served_values.values
    found = of_mode(lake, view, edges.distinct(), reach.first, reach.last, reach.keys)
    renamed = found.select(
        *view.keys,
        F.col("__edge").alias(column),
        *(F.col(name).alias(new) for name, new in names.items()),
    )
    return placed.join(renamed, [*view.keys, column], "left")
