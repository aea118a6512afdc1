"""Casts, of those types between which both engines agree."""

from __future__ import annotations

import re

from sqlglot import exp

from tidemill.features.types import BIGINTS
from tidemill.query.engines.expression_rules.numbers import WIDE
from tidemill.query.engines.expression_rules.rule import Types, call, cast, refuse, stop
from tidemill.query.engines.expression_rules.time_functions import time_literal
from tidemill.query.engines.spark_types import SPARK, decimal, family

_PLAIN = {"boolean": "true|false", "double": r"-?\d{1,300}(\.\d{1,300})?"}


def casted(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the value as another type."""
    to, of = _type_of(node), types[0]
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
    if to == WIDE and family(of) == "whole":
        return cast(node.this, "DECIMAL(38, 0)"), WIDE
    if of == "string" and _is_plain_literal(node.this, to):
        return cast(node.this, to.upper()), to
    if of == "array<void>" and family(to) == "array":
        return cast(node.this, node.args["to"].sql("duckdb")), to
    nulls = {"bigint": "BIGINT", "timestamp": "TIMESTAMPTZ", "string": "VARCHAR", "date": "DATE"}
    of_json = isinstance(node.this, exp.Anonymous) and node.this.name == "json_extract_string"
    if of_json and to == "bigint":
        return _whole_of_text(node.this), to
    target = nulls.get(to) if of == "void" else known.get((family(of), to))
    if target is None:
        raise refuse(f"a cast of {of} to {to}")
    return cast(node.this, target), to


def _type_of(node: exp.Expr) -> str:
    """Return the type of a cast as tables name theirs."""
    said = node.args["to"].sql(SPARK).lower().replace("`", "")
    return re.sub(r"(decimal\(\d+), ", r"\1,", said)


def _is_plain_literal(node: exp.Expr, to: str) -> bool:
    """Return whether a text is written out that both engines read as the same value."""
    if not (isinstance(node, exp.Literal) and node.is_string):
        return False
    if to == "bigint":
        whole = re.fullmatch(r"-?\d{1,19}", node.name, re.ASCII)
        return whole is not None and int(node.name) in BIGINTS
    pattern = _PLAIN.get(to)
    if family(to) == "decimal":
        digits, scale = decimal(to)
        before = rf"\d{{1,{digits - scale}}}" if digits > scale else "0"
        pattern = rf"-?{before}(\.\d{{1,{scale}}})?" if scale else f"-?{before}"
    return pattern is not None and re.fullmatch(pattern, node.name, re.ASCII) is not None


def tried(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a decimal(38,0) as BIGINT, null where it does not fit."""
    to = _type_of(node)
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
