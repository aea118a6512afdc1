"""What gold answered for every key at a time, and for some keys in a span of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.settings import Clock, iso, micros_of
from tidemill.errors import LakeError, UsageError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
from tidemill.training.answered import Answered, answered, known_times

Key = Sequence[object] | Mapping[str, object]


def snapshot(lake: Lake, view: FeatureView, at: datetime, clock: Clock) -> DataFrame:
    """Return what gold answered at a time for every key that it had a row of: keys, features,
    `changed_at` and `version`, the as_of and gold's version of the row's last change."""
    history = _history(lake, view)
    _check(lake, view, history, at, clock, "at")
    frames = {f"{view.name}_answered": history.until(at)}
    return ask(lake.spark, statement("history_snapshot", view), {}, frames)


def history(
    lake: Lake, view: FeatureView, keys: Iterable[Key], start: datetime, end: datetime, clock: Clock
) -> DataFrame:
    """Return what gold answered for some keys in [start, end), a row for each change: keys,
    `valid_from`, `valid_to`, as_of, version, features."""
    if end <= start:
        raise UsageError(
            f"{iso(end)} is not after {iso(start)}", where="end", expected="a later time"
        )
    answers = _history(lake, view)
    _check(lake, view, answers, start, clock, "start")
    wanted = lake.spark.createDataFrame(list(_rows(view, keys)), ", ".join(_texts(view)))
    typed = wanted.select(*(F.col(k).cast(view.types[k]).alias(k) for k in view.keys)).distinct()
    rows = answers.until(end).join(F.broadcast(typed), [*view.keys], "left_semi")
    frames = {f"{view.name}_answered": rows.where(F.col("__answered") < micros_of(end))}
    return ask(lake.spark, statement("key_history", view), {"start": start}, frames)


def _history(lake: Lake, view: FeatureView) -> Answered:
    found = answered(lake, view)
    if found is None:
        where = lake.tables.of(view).gold.name
        raise UsageError("was never refreshed", where=where, expected="a refresh, then a time")
    return found


def _check(
    lake: Lake, view: FeatureView, history: Answered, at: datetime, clock: Clock, where: str
) -> None:
    """Refuse a time that the history cannot answer; say the first one that it can."""
    known = known_times(lake, view, history, clock)
    if at > known.last:
        message = f"{iso(at)} is after the newest answer"
        raise UsageError(message, where=where, expected=f"{iso(known.last)} or earlier")
    for first, end in known.gaps:
        if first <= at < end:
            message = f"what {view.name} answered at {iso(at)} is not known: nobody kept it until "
            raise LakeError(message + iso(end), where=where, expected=f"{iso(end)} or later")
    if at < known.first:
        message = f"what {view.name} answered at {iso(at)} is not kept"
        expected = f"{iso(known.first)} or later; `served_history` keeps what comes"
        raise LakeError(message, where=where, expected=expected)


def _rows(view: FeatureView, keys: Iterable[Key]) -> Iterable[tuple[str, ...]]:
    """Yield the keys' values in the view's order, as text; UsageError for a key of another
    shape."""
    for key in keys:
        ordered = [key.get(k) for k in view.keys] if isinstance(key, Mapping) else list(key)
        if isinstance(key, str) or len(ordered) != len(view.keys) or None in ordered:
            expected = f"a list of keys, each with {', '.join(view.keys)}"
            raise UsageError(
                f"{key!r} is no key of view {view.name}", where="keys", expected=expected
            )
        yield tuple(str(value) for value in ordered)


def _texts(view: FeatureView) -> list[str]:
    return [f"{key} STRING" for key in view.keys]
