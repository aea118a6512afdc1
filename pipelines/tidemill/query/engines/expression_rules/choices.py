"""Comparisons, conditions, and expressions that choose among values."""

from __future__ import annotations

from sqlglot import exp

from tidemill.query.engines.expression_rules.rule import Types, cast, name_of, refuse
from tidemill.query.engines.expression_rules.time_functions import time_literal
from tidemill.query.engines.spark_types import ORDERED, common, family


def comparison(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Compare values of one family, whole numbers with any, times with text that is one."""
    families = [family(t) for t in types]
    for this, other, side in ((0, 1, "expression"), (1, 0, "this")):
        if families[this] in ("timestamp", "date") and families[other] == "string":
            node.set(side, time_literal(node.args[side], families[this]))
            return node, "boolean"
    if sorted(families) == ["date", "timestamp"]:
        side = "this" if families[0] == "date" else "expression"
        node.set(side, cast(node.args[side], "TIMESTAMPTZ"))
        return node, "boolean"
    numbers = {"whole", "double", "decimal"}
    alike = len({*families} - {"void"}) <= 1 or {*families} <= numbers
    if not alike or {*families} - {*ORDERED, "void", "interval"}:
        raise refuse(f"{types[0]} compared with {types[1]}")
    return node, "boolean"


def condition(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a condition of conditions."""
    if {*types} - {"boolean", "void"}:
        raise refuse(f"{name_of(node)} of {' and '.join(types)}")
    return node, "boolean"


def truth(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return what is true or false whatever it is asked of."""
    return node, "boolean"


def is_in(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return whether a value is among others of its family."""
    first, *others = types
    families = {family(each) for each in others if each != "void"}
    numbers = {"whole", "decimal", "double"}
    if families - {family(first)} and not ({family(first)} | families) <= numbers:
        raise refuse(f"{first} IN {', '.join(others)}")
    if family(first) not in ORDERED:
        raise refuse(f"{first} IN")
    return node, "boolean"


def between(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return whether a value is between two, both included."""
    for side, type_ in (("low", types[1]), ("high", types[2])):
        bound = exp.GTE(this=node.this.copy(), expression=node.args[side].copy())
        compared, _ = comparison(bound, (types[0], type_))
        node.set(side, compared.expression)
    return node, "boolean"


def chosen(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return one of several values of one type: CASE, coalesce, greatest ..."""
    result = common(types)
    if result is None:
        raise refuse(f"{name_of(node)} of {' and '.join(dict.fromkeys(types))}")
    if family(result) == "decimal" and {*types} - {result, "void"}:
        return cast(node.copy(), result), result
    return node, result


def as_it_is(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the expression, of the type of its operand."""
    return node, types[0]


def null(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return null."""
    return node, "void"
