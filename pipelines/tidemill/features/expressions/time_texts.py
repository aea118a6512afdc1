"""Texts that Spark would read as times, relative to now where they name no day.

Spark reads `'now'`, `'today'` and the like in a value that it can compute ahead, and a bare
`'12:30'` anywhere, as of the day on which the query runs. It does so wherever a time is expected:
in a CAST, in a comparison with a time, as the argument of `hour`. So a text may stand there only
where it names its day, or as the first argument of `try_to_timestamp` with a format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Literal

from sqlglot import exp

Kind = Literal["time", "text", "other"]

# The place of the time among the arguments of the functions that take one.
TAKES_TIME = {
    **dict.fromkeys(
        """day dayofmonth dayofweek dayofyear hour minute month quarter second trunc unix_micros
        unix_millis unix_seconds weekday weekofyear year""".split(),
        0,
    ),
    "date_trunc": 1,
}
_GIVES_TIME = frozenset({"date_trunc", "trunc", "try_to_timestamp"})
_GIVES_TEXT = frozenset(
    """concat concat_ws decode element_at format_number from_unixtime hex initcap left lower lpad
    ltrim md5 overlay regexp_extract regexp_replace repeat replace reverse right rpad rtrim sha sha1
    sha2 split split_part substr substring substring_index translate trim typeof upper""".split()
)
# These give one of their arguments, all brought to one type.
_GIVES_ARGUMENT = frozenset(
    "coalesce greatest if ifnull least nullif nvl nvl2 try_add try_subtract".split()
)
_OF_COLUMNS: Mapping[str, Kind] = {"TIMESTAMP": "time", "STRING": "text"}
_CAST_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ")
_CAST_TEXTS = ("CHAR", "VARCHAR", "TEXT")
_DAY = re.compile(r"\s*[+-]?\d{4,6}(-\d{1,2}(-\d{1,2}([ T].*)?)?)?\s*")


class TimeTexts:
    """Finds what would be read relative to now in one expression; `types` are the columns'."""

    def __init__(self, types: Mapping[str, str]) -> None:
        """Know the SQL types of an event's columns; one that is missing is no text and no time."""
        self._types = types

    def found(self, tree: exp.Expr) -> Iterator[str]:
        """Yield the SQL of each text that is read as a time and may name no day."""
        for node in tree.walk():
            for text in self._read_as_times(node):
                if not (_is_text(text) and _DAY.fullmatch(text.unnest().name)):
                    yield text.sql(dialect="databricks")

    def _read_as_times(self, node: exp.Expr) -> Iterator[exp.Expr]:
        """Yield the operands of a node that are texts and are read as times."""
        if isinstance(node, exp.Cast):
            if node.to.this.name in _CAST_TIMES and not self._is_day_of_column(node):
                yield from self._texts([node.this])
            return
        name, arguments = _call(node)
        if name in TAKES_TIME and len(arguments) > TAKES_TIME[name]:
            yield from self._texts([arguments[TAKES_TIME[name]]])
        elif name == "try_to_timestamp" and len(arguments) == 1:
            yield from self._texts(arguments)
        for operands in _brought_to_one_type(node, name, arguments):
            if any(self.kind(operand) == "time" for operand in operands):
                yield from self._texts(operands)

    def _is_day_of_column(self, cast: exp.Cast) -> bool:
        """Return whether a column is read as a date, which takes neither a bare time nor, of a
        value that differs from row to row, a word such as 'today'."""
        return cast.to.this.name == "DATE" and isinstance(cast.this.unnest(), exp.Column)

    def _texts(self, operands: list[exp.Expr]) -> Iterator[exp.Expr]:
        return (operand for operand in operands if self.kind(operand) == "text")

    def kind(self, node: exp.Expr) -> Kind:
        """Return what an expression gives: a time, a text, or neither."""
        node = node.unnest()
        if isinstance(node, exp.Literal):
            return "text" if node.is_string else "other"
        if isinstance(node, exp.Column):
            return _OF_COLUMNS.get(self._types.get(node.name, ""), "other")
        if isinstance(node, exp.Cast):
            of = node.to.this.name
            return "time" if of in _CAST_TIMES else "text" if of in _CAST_TEXTS else "other"
        if isinstance(node, exp.Interval):
            return "time"  # a text that is added to it is read as one
        if isinstance(node, exp.Bracket):
            return self.kind(node.this)
        if isinstance(node, exp.DPipe):
            return "text"
        name, arguments = _call(node)
        if name in _GIVES_TIME:
            return "time"
        if name in _GIVES_TEXT:
            return "text"
        if isinstance(node, exp.Add | exp.Sub):
            return "time" if self._any([node.this, node.expression], "time") else "other"
        if isinstance(node, exp.Case | exp.If):
            return self._of_any(_branches(node))
        return self._of_any(arguments) if name in _GIVES_ARGUMENT else "other"

    def _of_any(self, operands: list[exp.Expr]) -> Kind:
        if self._any(operands, "time"):
            return "time"
        return "text" if self._any(operands, "text") else "other"

    def _any(self, operands: list[exp.Expr], kind: Kind) -> bool:
        return any(self.kind(operand) == kind for operand in operands)


def _call(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """Return the name of a function and its arguments; an empty name where it is none."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower(), list(node.expressions)
    if isinstance(node, exp.Func) and not isinstance(node, exp.Case | exp.If | exp.Cast):
        return node.sql_name().lower(), list(node.iter_expressions())
    return "", []


def _brought_to_one_type(
    node: exp.Expr, name: str, arguments: list[exp.Expr]
) -> Iterator[list[exp.Expr]]:
    """Yield the groups of operands that Spark brings to one type, side by side in tuples."""
    if isinstance(node, exp.In):
        groups = [[node.this, *node.expressions]]
    elif isinstance(node, exp.Between):
        groups = [[node.this, node.args["low"], node.args["high"]]]
    elif isinstance(node, exp.Case | exp.If):
        groups = [_branches(node)]
        if isinstance(node, exp.Case) and node.this is not None:
            groups.append([node.this, *(branch.this for branch in node.args["ifs"])])
    elif isinstance(node, exp.Binary) and not isinstance(node, exp.DPipe | exp.Connector):
        groups = [[node.this, node.expression]]
    elif name in _GIVES_ARGUMENT:
        groups = [arguments[1:] if name in ("if", "nvl2") else arguments]
    else:
        return
    for group in groups:
        tuples = [one.unnest() for one in group]
        if all(isinstance(one, exp.Tuple) for one in tuples):
            yield from (list(side) for side in zip(*(t.expressions for t in tuples), strict=False))
        else:
            yield group


def _branches(node: exp.Case | exp.If) -> list[exp.Expr]:
    """Return the values that a CASE or an IF chooses from."""
    if isinstance(node, exp.Case):
        chosen = [branch.args["true"] for branch in node.args["ifs"]]
        return list(filter(None, chain(chosen, [node.args.get("default")])))
    return list(filter(None, [node.args["true"], node.args.get("false")]))


def _is_text(node: exp.Expr) -> bool:
    inner = node.unnest()
    return isinstance(inner, exp.Literal) and bool(inner.is_string)
