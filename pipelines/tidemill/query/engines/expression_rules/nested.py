"""Arrays and maps."""

from __future__ import annotations

from sqlglot import exp

from tidemill.query.engines.expression_rules.aggregate_functions import total_or_null
from tidemill.query.engines.expression_rules.rule import (
    Types,
    call,
    cast,
    expect,
    in_parens,
    refuse,
)
from tidemill.query.engines.expression_rules.time_functions import time_of_seconds
from tidemill.query.engines.spark_types import common, element, family


def size(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the number of elements."""
    expect(node, types, "array")
    return cast(call("len", node.this), "INTEGER"), "int"


def array(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return an array of values of one type."""
    each = common(types)
    if each is None:
        raise refuse(f"array of {' and '.join(dict.fromkeys(types))}")
    return node, f"array<{each}>"


def struct(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a struct of values, each with a name."""
    fields = zip(node.expressions, types, strict=True)
    return node, f"struct<{', '.join(f'{field.name}: {type_}' for field, type_ in fields)}>"


def compact(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return an array without its nulls."""
    expect(node, types, "array")
    return node, types[0]


def explode(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a row for each element, none for no array."""
    expect(node, types, "array")
    return call("unnest", node.this), element(types[0])


def map_value(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a map's value, null where the key is absent."""
    key = node.expressions[0]
    if family(types[0]) != "map" or not (isinstance(key, exp.Literal) and key.is_string):
        raise refuse(f"an element of {types[0]}")
    return call("map_extract_value", node.this, key), element(types[0])


def by_name(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return what sqlglot has no class for: map_values, isnull, timestamp_seconds, try_sum ..."""
    name = str(node.name).lower()
    if name == "timestamp_seconds":
        return time_of_seconds(node, types)
    if name == "try_sum":
        return total_or_null(node, types)
    if name == "map_values" and types and family(types[0]) == "map":
        return call("map_values", *node.expressions), f"array<{element(types[0])}>"
    if name in ("isnull", "isnotnull"):
        null = exp.Paren(this=exp.Is(this=in_parens(node.expressions[0]), expression=exp.Null()))
        return (null if name == "isnull" else exp.Not(this=null)), "boolean"
    raise refuse(name)


def array_total(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the sum of an array's numbers, one after the other: `(total, each) -> total + each`,
    of which this is the only form that is translated."""
    step = node.args.get("merge")
    if not (isinstance(step, exp.Lambda) and isinstance(step.this, exp.Add)):
        raise refuse("aggregate of an array")
    if types[0] != "array<double>" or types[1] != "double":
        raise refuse("aggregate of an array")
    names = [each.name for each in step.expressions]
    if [step.this.this.name, step.this.expression.name] != names:
        raise refuse("aggregate of an array")
    return call("tidemill_total", node.this, node.args["initial"]), "double"
