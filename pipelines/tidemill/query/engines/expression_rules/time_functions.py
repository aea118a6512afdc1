"""Times and dates, in UTC."""

from __future__ import annotations

import re

from sqlglot import exp

from tidemill.query.engines.expression_rules.rule import (
    Rule,
    Types,
    call,
    cast,
    expect,
    in_parens,
    name_of,
    refuse,
    stop,
)
from tidemill.query.engines.expression_rules.time_zones import OTHER_RULES
from tidemill.query.engines.spark_types import family

_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)

_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")

_LENGTHS = ("week", "day", "hour", "minute", "second")

_AFTER_STRFTIME = {"%Y", "%m", "%d", "%H", "%M", "%S"}


def time_literal(node: exp.Expr, to: str) -> exp.Expr:
    """Return a time written as text as DuckDB's; refused where Spark may read it otherwise."""
    text = str(node.name)
    if not (isinstance(node, exp.Literal) and node.is_string and _TIME.fullmatch(text)):
        raise refuse(f"{node.sql()} as a time")
    if to == "date" and len(text) != len("2026-11-21"):
        raise refuse(f"{text!r} as a date")
    return cast(exp.Literal.string(text), "DATE" if to == "date" else "TIMESTAMPTZ")


def unix_seconds(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return whole seconds since 1970, down from a fraction."""
    expect(node, types, "timestamp")
    second = exp.Div(
        this=cast(call("epoch_us", node.this), "DOUBLE"),
        expression=cast(exp.Literal.number(1_000_000), "DOUBLE"),
        typed=True,
        safe=False,
    )
    return cast(call("floor", second), "BIGINT"), "bigint"


def time_of_seconds(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the time of whole seconds since 1970."""
    if len(types) != 1 or family(types[0]) != "whole":
        raise refuse(f"{name_of(node)} of {' and '.join(types)}")
    return call("to_timestamp", cast(node.expressions[0], "DOUBLE")), "timestamp"


def part_of_time(name: str) -> Rule:
    """Return the rule of hour, month ...; Sunday is day 1 of the week in Spark."""

    def rule(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
        expect(node, types, "timestamp", "date")
        part = cast(call(name, node.this), "INTEGER")
        if name != "dayofweek":
            return part, "int"
        return exp.Paren(this=exp.Add(this=part, expression=exp.Literal.number(1))), "int"

    return rule


def truncate(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the start of the hour, week ... of a time."""
    expect(node, types, "timestamp", "date")
    unit = str(node.args["unit"].name).lower()
    if unit not in _UNITS:
        raise refuse(f"date_trunc to {unit}")
    return call("date_trunc", unit, cast(node.this, "TIMESTAMPTZ")), "timestamp"


def to_date(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the day of a time."""
    if types[0] == "string":
        return time_literal(node.this, "date"), "date"
    expect(node, types, "timestamp", "date")
    return cast(node.this, "DATE"), "date"


def as_time(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Pass the operand on: sqlglot puts this around what a format or a zone is asked of."""
    expect(node, types, "timestamp", "date")
    return node.this, types[0]


def in_zone(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return from_utc_timestamp: what clocks of the zone show, as if it were UTC; refused of a zone
    that has other rules here, and an error where only a row tells which it is."""
    expect(node, types, "timestamp")
    zone = node.args["zone"]
    local = call("timezone", "UTC", call("timezone", zone, node.this))
    if isinstance(zone, exp.Literal):
        if zone.name in OTHER_RULES:
            raise refuse(f"the rules of {zone.name}")
        return local, "timestamp"
    others = [exp.Literal.string(name) for name in OTHER_RULES]
    stopped = call("to_timestamp", stop("other rules of a time zone", zone, "DOUBLE"))
    among = exp.In(this=zone.copy(), expressions=others)
    return exp.Case(default=local).when(among, stopped, copy=False), "timestamp"


def format_time(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a time as text, by a pattern of digits alone."""
    expect(node, types, "timestamp", "date")
    pattern = str(node.args["format"].name).replace("strict", "")  # sqlglot's own mark
    rest = re.sub("|".join(_AFTER_STRFTIME), "", pattern)
    if re.search(r"[A-Za-z%']", rest):
        raise refuse(f"date_format with {pattern!r}")
    return call("strftime", node.this, pattern), "string"


def interval(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a length of time that is the same on any day."""
    unit = str(getattr(node.args.get("unit"), "name", "")).lower().removesuffix("s")
    amount = node.this
    if unit not in _LENGTHS or not isinstance(amount, exp.Literal):
        raise refuse(f"the interval {node.sql('spark')}")
    if not re.fullmatch(r"-?\d{1,9}", str(amount.name)):
        raise refuse(f"the interval {node.sql('spark')}")
    return exp.Interval(
        this=exp.Literal.string(str(amount.name)), unit=exp.Var(this=unit.upper())
    ), "interval"


def days_added(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a day so many days later."""
    unit = str(getattr(node.args.get("unit"), "name", "day")).lower()
    if types[0] != "date" or family(types[1]) != "whole" or unit != "day":
        raise refuse(f"{name_of(node)} of {' and '.join(types)}")
    days = cast(in_parens(node.expression), "INTEGER")
    return exp.Paren(this=exp.Add(this=in_parens(node.this), expression=days)), "date"


def days_between(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the days from one day to another."""
    unit = str(getattr(node.args.get("unit"), "name", "day")).lower()
    if [family(t) for t in types] != ["date", "date"] or unit != "day":
        raise refuse(f"{name_of(node)} of {' and '.join(types)}")
    days = exp.Sub(this=in_parens(node.this), expression=in_parens(node.expression))
    return cast(exp.Paren(this=days), "INTEGER"), "int"


def now(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the time of the statement."""
    return call("now"), "timestamp"
