"""Totals of windows of time, for dashboards: revenue by category and five minutes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from tidemill.config.stream_operators.inputs import LONGEST, Input, unknown_columns
from tidemill.config.yaml_loader import Declared
from tidemill.features.checks import Misdeclared
from tidemill.features.suggestions import did_you_mean
from tidemill.features.types import Duration, Identifier
from tidemill.features.windows import duration

Function = Literal["sum", "min", "max", "mean", "approx_distinct"]
FUNCTIONS = get_args(Function)


def _is_call(said: Any) -> Any:
    if said == "count":
        return said
    if not isinstance(said, Mapping) or len(said) != 1:
        raise ValueError(
            f"takes count, or a function of a column such as sum: amount, not {said!r}"
        )
    ((function, _),) = said.items()
    if function not in FUNCTIONS:
        raise ValueError(f"unknown function {function!r}{did_you_mean(str(function), FUNCTIONS)}")
    return said


Call = Annotated[dict[Function, Identifier], Field(min_length=1, max_length=1)]
Compute = dict[Identifier, Annotated[Literal["count"] | Call, BeforeValidator(_is_call)]]
OWN = ("window_start", "window_end", "window_day", "batch")
LEAST_STEP = 1000  # of a window: so many it may be in at most
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_NUMBERS = ("BIGINT", "DOUBLE")


class Averages(Declared):
    """Totals of the totals: of windows of `length`, which is several of those before, by `keys`,
    which are by default the same. What it computes is over columns of the totals."""

    length: Duration
    keys: tuple[Identifier, ...] | None = None
    compute: Compute = Field(min_length=1)


class Totals(Declared):
    """What events come to in windows of time: `[start, start + length)`, one behind the other, or,
    with `every`, one each so often, in which events then are several times. Windows begin at whole
    multiples of `every` since 1970.

    `compute` names the columns: `count`, or `sum`, `min`, `max`, `mean` or `approx_distinct` of a
    column. `emit: changes` has a window's row from its first event on, and changes it; `closed` has
    it once, when the watermark has passed its end. `then` makes totals of the totals, of closed
    windows alone. `partition` names the key by which the table is partitioned; else it is by day.
    Behind a `join` they are of its pairs, by the time of the side `of`; `where` and `watermark` are
    the sides' then.
    """

    keys: tuple[Identifier, ...] = ()
    where: str | None = None
    watermark: Duration | None = None
    of: Identifier | None = None
    length: Duration
    every: Duration | None = None
    compute: Compute = Field(min_length=1)
    emit: Literal["changes", "closed"] = "changes"
    then: Averages | None = None
    partition: Identifier | None = None

    @property
    def inputs(self) -> Mapping[str, Input]:
        """What they read, by its name."""
        return {"events": self.input}

    @property
    def input(self) -> Input:
        """The events that they take, where no join stands before them."""
        return Input(where=self.where, watermark=self.watermark or "1s")

    @property
    def kept(self) -> Mapping[str, timedelta]:
        """Nothing is known: the state has a row for each open window and keys, not for an event."""
        return {}

    @property
    def lengths(self) -> tuple[timedelta, timedelta]:
        """The length of a window, and how long after one the next one begins."""
        return duration(self.length), duration(self.every or self.length)

    @property
    def merges(self) -> bool:
        """Whether rows change that are there."""
        return self.emit == "changes" and self.then is None

    @property
    def result_keys(self) -> tuple[str, ...]:
        """The keys of the rows that come out."""
        return self.keys if self.then is None or self.then.keys is None else self.then.keys

    def types_of(self, types: Mapping[str, str]) -> dict[str, str]:
        """Return the types of the columns that come out, but keys and times, by those of the
        event."""
        first = computed_types(self.compute, types)
        return computed_types(self.then.compute, first) if self.then else first

    def checked(self, types: Mapping[str, str], *path: str | int) -> Totals:
        """Return the words as they were understood, by the types of the columns that they read;
        Misdeclared, at the path, for what they cannot be."""
        unknown_columns(self.keys, types, *path, "keys")
        length, step = self.lengths
        if length > LONGEST:
            raise Misdeclared("a window may be 366d at most", *path, "length")
        if not timedelta(0) < step <= length or length / step > LEAST_STEP:
            message = (
                f"every {self.every} must be at most the length, and a {LEAST_STEP}th at least"
            )
            raise Misdeclared(message, *path, "every")
        for place, compute, known in self._computed(types):
            _check_compute(compute, known, *path, *place)
        self._check_names(*path)
        if self.then:
            _check_then(self, self.then, *path)
        if self.partition not in (None, *self.result_keys):
            hint = did_you_mean(str(self.partition), self.result_keys)
            raise Misdeclared(f"{self.partition!r} is none of the keys{hint}", *path, "partition")
        where = self.input.understood(types, *path) if self.where else {}
        return self.model_copy(update=where)

    def _computed(
        self, types: Mapping[str, str]
    ) -> list[tuple[tuple[str, ...], Compute, Mapping[str, str]]]:
        each: list[tuple[tuple[str, ...], Compute, Mapping[str, str]]] = [
            (("compute",), self.compute, types)
        ]
        if self.then:
            # The types of the first are asked where it is known to be right.
            _check_compute(self.compute, types, "compute")
            known = computed_types(self.compute, types)
            each.append((("then", "compute"), self.then.compute, known))
        return each

    def _check_names(self, *path: str | int) -> None:
        for name in self.keys:
            if name.lower() in OWN:
                raise Misdeclared(f"a column is called {name} already", *path, "keys")
        for compute in (self.compute, self.then.compute if self.then else {}):
            taken = {*OWN, *map(str.lower, self.keys)}
            for name in compute:
                if name.lower() in taken:
                    raise Misdeclared(f"a column is called {name} already", *path, "compute", name)
                taken.add(name.lower())


def _check_then(totals: Totals, then: Averages, *path: str | int) -> None:
    length, step = totals.lengths
    if step != length:
        message = "totals of totals need windows that do not overlap: leave `every` out"
        raise Misdeclared(message, *path, "every")
    longer = duration(then.length)
    if longer % length or longer == length:
        message = f"its length must be several of {totals.length}, found {then.length}"
        raise Misdeclared(message, *path, "then", "length")
    for name in then.keys or ():
        if name not in totals.keys:
            raise Misdeclared(f"{name!r} is none of the keys before", *path, "then", "keys")


def _check_compute(compute: Compute, types: Mapping[str, str], *path: str | int) -> None:
    for name, call in compute.items():
        if call == "count":
            continue
        assert isinstance(call, dict)
        ((function, column),) = call.items()
        unknown_columns([column], types, *path, name)
        adds = function in {"sum", "mean"}
        if adds and types[column] not in _NUMBERS and not _DECIMAL.match(types[column]):
            message = f"{function} is of numbers, and {column} is {types[column].lower()}"
            raise Misdeclared(message, *path, name)


def computed_types(compute: Compute, types: Mapping[str, str]) -> dict[str, str]:
    """Return the SQL types of computed columns, by those of the columns that they read."""
    return {name: _type_of(call, types) for name, call in compute.items()}


def _type_of(call: str | Mapping[Function, str], types: Mapping[str, str]) -> str:
    if isinstance(call, str):
        return "BIGINT"
    ((function, column),) = call.items()
    if function == "approx_distinct":
        return "BIGINT"
    if function == "mean":
        return "DOUBLE"
    decimal = _DECIMAL.match(types[column])
    if function == "sum" and decimal:
        return f"DECIMAL({min(38, int(decimal[1]) + 10)},{decimal[2]})"
    return types[column]
