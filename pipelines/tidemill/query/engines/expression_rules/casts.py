"""Casts, of those types between which both engines agree."""

from __future__ import annotations

from sqlglot import exp

from tidemill.query.engines.expression_rules.numbers import WIDE
from tidemill.query.engines.expression_rules.rule import Types, call, cast, refuse, stop
from tidemill.query.engines.expression_rules.time_functions import time_literal
from tidemill.query.engines.spark_types import family

_EMPTY = {"array<string>": "VARCHAR[]", "array<bigint>": "BIGINT[]", "array<double>": "DOUBLE[]"}


def casted(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the value as another type."""
    to, of = node.args["to"].sql("spark").lower(), types[0]
    if to == "timestamp" and of == "string":
        return time_literal(node.this, "timestamp"), to
    if to == "date" and of == "string":
        return time_literal(node.this, "date"), to
    known = {
        ("whole", "bigint"): "BIGINT",
        ("whole", "double"): "DOUBLE",
        ("whole", "string"): "VARCHAR",
        ("decimal", "double"): "DOUBLE",
        ("double", "double"): "DOUBLE",
        ("string", "string"): "VARCHAR",
        ("boolean", "string"): "VARCHAR",
        ("date", "string"): "VARCHAR",
        ("timestamp", "date"): "DATE",
        ("date", "timestamp"): "TIMESTAMPTZ",
        ("timestamp", "timestamp"): "TIMESTAMPTZ",
        ("date", "date"): "DATE",
        ("boolean", "boolean"): "BOOLEAN",
    }
    if to == "decimal(38, 0)" and family(of) == "whole":
        return cast(node.this, "DECIMAL(38, 0)"), WIDE
    if of == "array<void>" and to in _EMPTY:
        return cast(node.this, _EMPTY[to]), to
    nulls = {"bigint": "BIGINT", "timestamp": "TIMESTAMPTZ", "string": "VARCHAR", "date": "DATE"}
    of_json = isinstance(node.this, exp.Anonymous) and node.this.name == "json_extract_string"
    if of_json and to == "bigint":
        return _whole_of_text(node.this), to
    target = nulls.get(to) if of == "void" else known.get((family(of), to))
    if target is None:
        raise refuse(f"a cast of {of} to {to}")
    return cast(node.this, target), to


def tried(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a decimal(38,0) as BIGINT, null where it does not fit."""
    to = node.args["to"].sql("spark").lower()
    if types[0] != WIDE or to != "bigint":
        raise refuse(f"try_cast of {types[0]} to {to}")
    return exp.TryCast(this=node.this, to=exp.DataType.build("BIGINT", dialect="duckdb")), to


def _whole_of_text(text: exp.Expr) -> exp.Expr:
    """Return text as a whole number; an error where it is anything else, of which Spark decides."""
    digits = call("regexp_full_match", text.copy(), r"-?\d{1,18}")
    good = exp.Or(this=exp.Is(this=text.copy(), expression=exp.Null()), expression=digits)
    return exp.Case(
        ifs=[exp.If(this=good, true=cast(text, "BIGINT"))],
        default=stop("no whole number", text, "BIGINT"),
    )
