"""Numbers: arithmetic, division, rounding."""

from __future__ import annotations

import re

from sqlglot import exp

from tidemill.query.engines.expression_rules.rule import (
    Rule,
    Types,
    call,
    cast,
    common_number,
    name_of,
    refuse,
    stop,
)
from tidemill.query.engines.spark_types import WHOLE, common, family

WIDE = "decimal(38,0)"


def literal(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a literal; one with a point is a decimal, with an exponent a double."""
    if node.is_string:
        return node, "string"
    text = str(node.name)
    if re.fullmatch(r"\d+", text):
        return node, "int" if int(text) < 2**31 else "bigint"
    if "e" in text.lower():
        return cast(node, "DOUBLE"), "double"
    digits = text.partition(".")[2]
    return node, f"decimal({max(len(text.replace('.', '')), 1)},{len(digits)})"


def sum_or_difference(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a sum or difference of numbers, or of times and intervals."""
    left, right = map(family, types)
    if "interval" in (left, right):
        other = left if right == "interval" else right
        if other not in ("timestamp", "interval"):
            raise refuse(f"{other} and an interval")
        return node, other
    if left == "timestamp" and right == "timestamp" and isinstance(node, exp.Sub):
        return node, "interval"
    if wide := _wide(node, types):
        return wide
    return node, common_number(node, types)


def product(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a product of numbers, or of a number and an interval."""
    if sorted(map(family, types)) == ["interval", "whole"]:
        return node, "interval"
    if wide := _wide(node, types):
        return wide
    return node, common_number(node, types)


def _wide(node: exp.Expr, types: Types) -> tuple[exp.Expr, str] | None:
    """Return an operation of decimal(38,0) and whole numbers, an error beyond 38 digits; None of
    other types."""
    if WIDE not in types or not all(t == WIDE or family(t) == "whole" for t in types):
        return None
    for side in ("this", "expression"):
        node.set(side, cast(node.args[side], "HUGEINT"))
    return cast(exp.Paren(this=node.copy()), "DECIMAL(38, 0)"), WIDE


def shifted(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a BIGINT shifted to the right, its sign kept."""
    places = node.expression
    if types[0] != "bigint" or not isinstance(places, exp.Literal) or int(places.name) > 63:
        raise refuse(f"shiftright of {' and '.join(types)}")
    return exp.Paren(this=node.copy()), "bigint"


def bits_in_both(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the bits that two whole numbers have, as BIGINT where one is."""
    if {family(t) for t in types} != {"whole"} or "bigint" not in types:
        raise refuse(f"{' & '.join(types)}")
    for side in ("this", "expression"):
        node.set(side, cast(node.args[side], "BIGINT"))
    return exp.Paren(this=node.copy()), "bigint"


def quotient(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a quotient, which is a double in Spark."""
    common_number(node, types)
    over = _guarded(cast(node.expression, "DOUBLE"), "DOUBLE")
    divided = exp.Div(this=cast(node.this, "DOUBLE"), expression=over, typed=True, safe=False)
    return exp.Paren(this=divided), "double"


def _guarded(divisor: exp.Expr, type_: str) -> exp.Expr:
    """Return the divisor, of which 0 is an error, as in Spark."""
    zero = exp.EQ(this=divisor.copy(), expression=exp.Literal.number(0))
    stopped = stop("division by zero", divisor, type_)
    return exp.Case(ifs=[exp.If(this=zero, true=stopped)], default=divisor)


def whole_division(sign: str) -> Rule:
    """Return the rule of DIV or %: of whole numbers, towards zero, the sign that of the first."""

    def rule(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
        if {family(t) for t in types} != {"whole"}:
            raise refuse(f"{name_of(node)} of {' and '.join(types)}")
        whole = [cast(each, "BIGINT") for each in (node.this, node.expression)]
        divided = call(sign, whole[0], _guarded(whole[1], "BIGINT"))
        return divided, "bigint" if isinstance(node, exp.IntDiv) else str(common(types))

    return rule


def same_number(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return what has the type of its number: -x, abs(x)."""
    return node, common_number(node, types)


def rounded(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Round halves of the shortest decimal that a double stands for away from zero, as Spark does;
    numbers that have no such decimal of 20 places are left to Spark."""
    places = node.args.get("decimals")
    if family(types[0]) == "whole" and places is None:
        return node.this, types[0]
    count = int(places.name) if isinstance(places, exp.Literal) else 0 if places is None else -1
    if types[0] != "double" or not 0 <= count <= 9:
        raise refuse(f"round of {types[0]}")
    return call("tidemill_round", node.this, count), "double"


def to_whole(name: str) -> Rule:
    """Return the rule of floor and ceil of a double."""

    def rule(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
        if node.args.get("decimals") is not None or types[0] not in ("double", *WHOLE):
            raise refuse(f"{name} of {types[0]}")
        return cast(call(name, node.this), "BIGINT"), "bigint"

    return rule


def logarithm(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the logarithm, whose last bit is the machine's; so only where it is rounded."""
    common_number(node, types)
    if not node.find_ancestor(exp.Round):
        raise refuse("ln that is not rounded")
    positive = exp.GT(this=node.this.copy(), expression=exp.Literal.number(0))
    logarithm = call("ln", cast(node.this, "DOUBLE"))
    return exp.Case(ifs=[exp.If(this=positive, true=logarithm)]), "double"
