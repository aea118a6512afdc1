"""What an aggregate is: SQL for three steps, as data.

    events ──bucket──► parts per (keys, bucket) ──merge over a window──► parts ──result──► value

Texts hold placeholders. In all of them: `{of}` and other inputs by role are the event's columns,
`{of_type}` their SQL types; a parameter stands under its own name. Besides:

    bucket    `{where}` the condition an event must meet, `{time}` the event time
    merge     `{partial}` the bucket column, `{filter}` the window's FILTER clause, empty where all
              rows count; `{inside}` the window's condition, and that the row holds the part:
              one made before the feature was declared holds none
    result    `{<part>}` a merged part, by the part's name
    off       `{gold}` and `{fresh}` two values of the same events, `{bounds}` what `bounds` gives
    numbers   `{exact}` the type in which the input adds up without rounding; `{units}` the input as
              a whole number, in units of its last digit, of which `{unit}` make 1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tidemill.features.aggregates.folds import Finish, Fold, add, only

MISSING = object()


@dataclass(frozen=True)
class Parameter:
    """A number that an aggregate takes, within bounds; a list of numbers when `many`.

    Without a default it has to be given.
    """

    type: type[int] | type[float]
    low: float
    high: float
    default: Any = MISSING
    many: bool = False

    def read(self, name: str, given: Any) -> Any:
        """Return the value, checked; ValueError says what was expected."""
        if self.many:
            if not isinstance(given, list | tuple) or not given:
                raise ValueError(f"'{name}' takes a list of numbers, found {given!r}")
            return tuple(self._one(name, value) for value in given)
        return self._one(name, given)

    def _one(self, name: str, given: Any) -> Any:
        number = isinstance(given, int | float) and not isinstance(given, bool)
        if not number or not self.low <= given <= self.high or self.type(given) != given:
            raise ValueError(f"'{name}' takes {self.words}, found {given!r}")
        return self.type(given)

    @property
    def words(self) -> str:
        """What it takes, in words."""
        whole = "a whole number" if self.type is int else "a number"
        return f"{whole} from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Part:
    """One column that an aggregate keeps in a bucket; its name ends the column's.

    `empty` is what merging no rows at all gives. An `additive` part merges by a sum, so that what
    left a window is subtracted, exactly. A `witness` tells, exactly, whether the events behind a
    sketch are the same; a part that is not `reproducible` may come out otherwise from the same
    events in another order, so no digest reads it. No value of it is below `least`.

    `adds` is what an event adds to an additive part that may overflow. Such a part is added up
    exactly (see `sums`) and is null over a window whose sum its type cannot hold; `bucket` and
    `merge` then only say what it is.

    `fold` is `merge` outside of SQL, of two partials that are not null; None where only SQL can.
    """

    name: str
    type: str
    bucket: str
    merge: str
    empty: str = "NULL"
    additive: bool = False
    witness: bool = False
    reproducible: bool = True
    least: int | None = None
    adds: str = ""
    fold: Fold | None = None

    @property
    def folded(self) -> Fold | None:
        """What merges two partials outside of SQL; None where only SQL can."""
        return add if self.additive and not self.witness else self.fold


@dataclass(frozen=True)
class Aggregate:
    """One mergeable aggregate, by its name in YAML.

    `summary`, `nulls` and `accuracy` are for its page in the docs. `inputs` are the roles of the
    event's columns it takes and what each may be: any, number, boolean, exact (any but a double).
    `result`, of type `type`, is the value of merged parts, `empty` the value over a window without
    events. `fold` is `merge` outside of SQL, of two partials that are not null, where there is one
    part and `result` is it; `neutral` is then the partial of no event. Of a sketch, `off` is the
    condition of a value to be farther from another than the declared accuracy allows; `bounds`,
    like `result` an expression over merged parts, is what it needs to know beside the two. No value
    is below `least`; a longer window's is never below (`grows`) or above (`shrinks`) that of one
    inside it. `overflow` is the condition over merged parts, with the placeholders of `result`, of
    a window that the aggregate has no value for because it holds too much; the value is then null.
    `finish` is `result` outside of SQL, where it is not the one part; it raises OverflowError for
    such a window.
    """

    name: str
    summary: str
    parts: tuple[Part, ...]
    result: str
    type: str
    empty: str = "NULL"
    inputs: Mapping[str, str] = field(default_factory=lambda: {"of": "any"})
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    derived: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    nulls: str = "null inputs are left out"
    accuracy: str = "exact"
    fold: Fold | None = None
    neutral: Any = None
    bounds: str = ""
    off: str = ""
    least: int | None = None
    nested: Literal["", "grows", "shrinks"] = ""
    overflow: str = ""
    finish: Finish | None = None

    @property
    def finished(self) -> Finish | None:
        """What gives the value of merged parts outside of SQL; None where only SQL can."""
        if not all(part.folded for part in self.parts):
            return None
        if self.finish is None and self.result == f"{{{self.parts[0].name}}}":
            return only
        return self.finish

    @property
    def invertible(self) -> bool:
        """Whether what leaves a window can be subtracted."""
        return all(part.additive for part in self.parts)

    @property
    def witness(self) -> Part | None:
        """The part that tells whether a sketch is of the same events; None for exact aggregates."""
        return next((part for part in self.parts if part.witness), None)
