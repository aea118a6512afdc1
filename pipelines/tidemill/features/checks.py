"""What a view may declare: each check names what is wrong, and where in the view it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tidemill.features.columns import NUMBERS, Partial, columns_of, partials_of
from tidemill.features.declaration import Declaration
from tidemill.features.expressions import row_expression
from tidemill.features.feature import RATIO, Feature, known
from tidemill.features.suggestions import did_you_mean
from tidemill.features.types import OF_ANSWERS, RESERVED
from tidemill.features.windows import HOUR


class Misdeclared(ValueError):
    """A declaration that cannot be; `path` leads to the place in the view."""

    def __init__(self, message: str, *path: str | int):
        """Say what is wrong, and where in the view."""
        super().__init__(message)
        self.path = path


def check_columns(view: Declaration) -> None:
    """Refuse columns that cannot be; have what is selected read as it was understood."""
    for column in (*view.event_schema, *view.select, view.event_time, *view.keys):
        if column.lower() in RESERVED:
            raise Misdeclared(
                f"column {column!r} of view {view.name} is one of Tidemill's own names"
            )
    if view.event_time in view.event_schema:
        raise Misdeclared(
            f"event_time {view.event_time!r} is also in the schema: leave it out there"
        )
    event = [*view.event_schema, view.event_time]
    refuse_twice("column", [*event, *view.select])
    types = {column: view.types[column] for column in event}
    for name, selected in view.select.items():
        text = _at("select", name)(row_expression.checked)(selected.sql, types)
        view.select[name] = selected.model_copy(update={"sql": text})
    for key in view.keys:
        _known_column(view, key, "keys")
        at = "select" if key in view.select else "schema"
        type_ = view.select[key].type if key in view.select else view.event_schema[key]
        if type_.endswith("?"):
            raise Misdeclared(f"key {key!r} may not be absent: its type ends with ?", at, key)


def key_of_answers(view: Declaration) -> str | None:
    """Return the key of a view that is called as something is that is said of gold's answers; None
    where there is none, as it has to be for alerts, `served_history`, and what reads answers."""
    return next((key for key in view.keys if key.lower() in OF_ANSWERS), None)


def _known_column(view: Declaration, column: str, *path: str | int) -> None:
    if column not in view.types or column == view.event_time:
        hint = did_you_mean(column, view.types)
        raise Misdeclared(f"unknown column {column!r} in view {view.name}{hint}", *path)


def check_bucket(view: Declaration) -> None:
    """Refuse a bucket of which an hour does not hold a whole number."""
    if HOUR % view.bucket_length:
        raise Misdeclared(f"bucket {view.bucket!r} does not divide an hour", "bucket")


def check_feature(view: Declaration, feature: Feature, place: int) -> None:
    """Refuse a feature that the view cannot have; `place` is its place in the declaration."""
    path = ("features", place)
    if not feature.windows:
        raise Misdeclared(
            f"a {feature.aggregate} of view {view.name} has no windows: add over", *path
        )
    for window in feature.windows:
        if not window.fits(view.bucket_length):
            raise Misdeclared(
                f"window {window.text!r} is not a multiple of the bucket of {view.bucket}"
                if window.period is None
                else f"window {window.text!r} does not begin with a bucket of {view.bucket}: take "
                "a shorter bucket",
                *path,
            )
        if window.apart > view.kept:
            raise Misdeclared(f"history {view.history} is shorter than {window.text}", *path)
    if feature.column:
        _known_column(view, feature.column, *path)
        if view.types[feature.column] != "STRING":
            raise Misdeclared(f"'by' takes a string column, {feature.column!r} is none", *path)
    if feature.condition is not None:
        _at(*path)(row_expression.checked)(feature.condition, view.types, condition=True)
    if feature.aggregate == RATIO:
        if not feature.label:
            raise Misdeclared("a ratio takes a name", *path)
    else:
        for role, column in feature.inputs.items():
            _known_column(view, column, *path)
            _check_input(view, feature, role, column, path)
    _at(*path)(list)(columns_of(feature, view.features, view.types, view.event_time))


def _check_input(
    view: Declaration, feature: Feature, role: str, column: str, path: tuple[str | int, ...]
) -> None:
    kind, type_ = known(feature.aggregate).inputs[role], view.types[column]
    if kind == "number" and not type_.startswith(NUMBERS):
        raise Misdeclared(f"{feature.aggregate} takes a number, {column} is {type_}", *path)
    if kind == "exact" and type_ == "DOUBLE":
        raise Misdeclared(
            f"{feature.aggregate} takes no double such as {column}: select a bigint of it",
            *path,
        )
    if kind == "boolean" and type_ != "BOOLEAN":
        raise Misdeclared(f"{feature.aggregate} takes a boolean, {column} is {type_}", *path)
    if "scale" in known(feature.aggregate).parameters:
        given = feature.parameters.get("scale")
        if type_ == "DOUBLE" and given is None:
            raise Misdeclared(
                f"{feature.aggregate} of the double {column} takes a scale, the digits after the "
                f"point that are kept: {{of: {column}, scale: 2}}",
                *path,
            )
        if type_ != "DOUBLE" and given is not None:
            raise Misdeclared(f"{column} is {type_}, which is exact: no scale", *path)


def check_partials(view: Declaration) -> None:
    """Refuse two features that would keep different things under one name, and one that would take
    a key's."""
    seen: dict[str, Partial] = {}
    keys = {key.lower() for key in view.keys}
    for place, feature in enumerate(view.features):
        declared = columns_of(feature, view.features, view.types, view.event_time)
        parts = partials_of(feature, view.types, view.event_time)
        for name in (*(c.name for c in declared), *(p.name for p in parts)):
            if name.lower() in keys:
                message = f"a feature keeps a column {name!r}, which is a key: give it a name"
                raise Misdeclared(message, "features", place)
        for partial in partials_of(feature, view.types, view.event_time):
            first = seen.setdefault(partial.name.lower(), partial)
            if (first.bucket, first.merge) != (partial.bucket, partial.merge):
                raise Misdeclared(
                    f"two features keep different things as {partial.name!r}: give one a name",
                    "features",
                    place,
                )


def _at(*path: str | int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what calls a function, its errors told with their place in the view."""

    def placed(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **words: Any) -> Any:
            try:
                return function(*args, **words)
            except ValueError as error:
                raise Misdeclared(str(error), *path) from error

        return called

    return placed


def refuse_twice(what: str, names: Iterable[str], places: Mapping[str, int] | None = None) -> None:
    """Refuse a name that stands twice, whatever its case; `places` are those of features."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            path = ("features", places[name]) if places else ()
            raise Misdeclared(f"{what} {name!r} is declared twice", *path)
        seen.add(name.lower())
