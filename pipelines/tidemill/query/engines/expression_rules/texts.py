"""Texts, and values in JSON."""

from __future__ import annotations

import re

from sqlglot import exp

from tidemill.query.engines.expression_rules.rule import (
    Rule,
    Types,
    call,
    cast,
    expect,
    name_of,
    refuse,
    stop,
)
from tidemill.query.engines.spark_types import family


def of_bytes(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return bytes that are written out."""
    return call("unhex", str(node.this)), "binary"


def of_texts(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Expect texts."""
    if {*types} - {"string", "void"}:
        raise refuse(f"{name_of(node)} of {' and '.join(types)}")
    return node, "string"


def concat(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return `concat`, which is null where any part is, as `||` is; of bytes, or of texts and whole
    numbers."""
    kinds = [family(type_) for type_ in types]
    if {*kinds} - {"binary"} and {*kinds} - {"string", "void", "whole"}:
        raise refuse(f"{name_of(node)} of {' and '.join(types)}")
    of = "binary" if {*kinds} == {"binary"} else "string"
    parts = zip(node.expressions, kinds, strict=True)
    first, *rest = [cast(each, "VARCHAR") if kind == "whole" else each for each, kind in parts]
    joined = first
    for each in rest:
        joined = exp.DPipe(this=joined, expression=each)
    return exp.Paren(this=joined), of


def repeated(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a text that is written out, some times."""
    if not all(isinstance(each, exp.Literal) for each in (node.this, node.args["times"])):
        raise refuse("repeat of what a column says")
    return node, "string"


def unhexed(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the bytes of hexadecimal digits that are written out."""
    if not isinstance(node.this, exp.Repeat):
        raise refuse("unhex of what a column says")
    return call("unhex", node.this), "binary"


def joined(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return texts with another between them, those that are null left out."""
    separator = node.expressions[0]
    if not (isinstance(separator, exp.Literal) and separator.is_string):
        raise refuse("concat_ws by what a column says")
    of_texts(node, types)
    return call("concat_ws", *node.expressions), "string"


def ascii(name: str) -> Rule:
    """Return the rule of upper and lower: beyond ASCII they are Spark's."""

    def rule(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
        of_texts(node, types)
        ascii_ = call("regexp_full_match", node.this.copy(), r"[\x00-\x7F]*")
        fits = exp.Or(this=exp.Is(this=node.this.copy(), expression=exp.Null()), expression=ascii_)
        return exp.Case(
            ifs=[exp.If(this=fits, true=call(name, node.this))],
            default=stop(f"{name} beyond ASCII", node.this, "VARCHAR"),
        ), "string"

    return rule


def length(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the number of characters."""
    expect(node, types, "string")
    return cast(call("length", node.this), "INTEGER"), "int"


def start_of_text(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the first characters; `left` of a count below 1 is the empty text in Spark."""
    expect(node, types, "string")
    count = node.expression
    if not (isinstance(count, exp.Literal) and re.fullmatch(r"[1-9]\d{0,8}", str(count.name))):
        raise refuse("left of a count that is no whole number above 0")
    return call("left", node.this, count), "string"


def part_of_text(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a part of a text, counted from 1."""
    expect(node, types, "string")
    bounds = [node.args[name] for name in ("start", "length") if node.args.get(name) is not None]
    if not all(
        isinstance(bound, exp.Literal) and re.fullmatch(r"[1-9]\d{0,8}", str(bound.name))
        for bound in bounds
    ):
        raise refuse("substring with bounds that are no whole numbers above 0")
    return call("substring", node.this, *bounds), "string"


def like(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return whether a text is like a literal pattern without escapes."""
    of_texts(node, types)
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or "\\" in str(pattern.name):
        raise refuse("LIKE with an escape, or a pattern that is no literal")
    return node, "boolean"


def json_value(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return what stands in JSON under names, as text."""
    expect(node, types, "string")
    path = node.expression.sql("duckdb").strip("'")
    if not re.fullmatch(r"\$(\.\w+)+", path):
        raise refuse(f"the JSON path {path}")
    return call("json_extract_string", node.this, path), "string"
