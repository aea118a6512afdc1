"""Aggregates and window functions."""

from __future__ import annotations

import re

from sqlglot import exp

from tidemill.query.engines.expression_rules.rule import Types, call, cast, name_of, refuse
from tidemill.query.engines.spark_types import ORDERED, WHOLE, common, decimal, family


def total(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a sum of whole numbers as BIGINT (see `_Scope`), of doubles where it is rounded: the
    order of their addition is chance."""
    kind = family(types[0])
    if kind == "whole":
        return node, "bigint"  # `CAST(... AS BIGINT)` stands around its window or filter
    if kind == "double" and node.find_ancestor(exp.Round):
        return node, "double"
    if kind == "decimal":
        precision, scale = decimal(types[0])
        return node, f"decimal({min(precision + 10, 38)},{scale})"
    raise refuse(f"sum of {types[0]}")


def total_or_null(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return a sum of decimals that is null where it has more than 38 digits: Spark says where that
    is, as an error here leaves the statement to it."""
    if len(types) != 1 or family(types[0]) != "decimal":
        raise refuse(f"try_sum of {', '.join(types)}")
    if decimal(types[0])[0] < 38:
        raise refuse(f"try_sum of {types[0]}")  # of which Spark's sum may have fewer digits
    return exp.Sum(this=node.expressions[0]), types[0]


def average(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the mean; of doubles where it is rounded."""
    whole = family(types[0]) == "whole"
    if not whole and not (types[0] == "double" and node.find_ancestor(exp.Round)):
        raise refuse(f"avg of {types[0]}")
    node.set("this", cast(node.this, "DOUBLE"))
    return node, "double"


def count(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Count rows, values, or the distinct values of one column."""
    distinct = isinstance(node.this, exp.Distinct)
    if node.expressions or (distinct and len(node.this.expressions) != 1):
        raise refuse("count of several columns")
    if distinct and family(types[0]) not in ORDERED:
        raise refuse(f"count of distinct {types[0]}")
    return node, "bigint"


def count_if(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Count the rows that meet a condition."""
    if types[0] not in ("boolean", "void"):
        raise refuse(f"count_if of {types[0]}")
    one = exp.Case(ifs=[exp.If(this=node.this, true=exp.Literal.number(1))])
    return exp.Count(this=one, big_int=True), "bigint"


def extreme(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the smallest or largest value."""
    if family(types[0]) not in ORDERED:
        raise refuse(f"{name_of(node)} of {types[0]}")
    return node, types[0]


def by_extreme(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the value of the row with the smallest, or largest, of another; Spark takes a null
    value too."""
    if node.args.get("count") is not None:
        raise refuse(f"{name_of(node)} of several")
    by = node.expression
    if isinstance(by, exp.Struct):
        by = _by_fields(by)
    elif family(types[1]) not in ORDERED:
        raise refuse(f"{name_of(node)} by {types[1]}")
    name = "arg_min_null" if isinstance(node, exp.ArgMin) else "arg_max_null"
    return call(name, node.this, by), types[0]


def _by_fields(struct: exp.Struct) -> exp.Expr:
    """Return a struct to order by, in which null comes first, as in Spark."""
    fields: list[exp.Expr] = []
    for place, field in enumerate(struct.expressions):
        value = field.expression if isinstance(field, exp.PropertyEQ) else field
        known = exp.Not(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.Null()))
        for name, each in ((f"k{place}", known), (f"v{place}", value)):
            fields.append(exp.PropertyEQ(this=exp.to_identifier(name), expression=each))
    return exp.Struct(expressions=fields)


def percentile(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return Spark's percentile: between two values by its distance to both."""
    asked = node.args.get("quantile")
    where = "0.5" if isinstance(node, exp.Median) else getattr(asked, "name", "")
    if not re.fullmatch(r"0(\.\d+)?|1(\.0+)?", str(where)) or types[0] not in ("double", *WHOLE):
        raise refuse(f"{name_of(node)} of {types[0]}")
    values = call("list", cast(node.this, "DOUBLE"))
    known = exp.Not(this=exp.Is(this=exp.Paren(this=node.this.copy()), expression=exp.Null()))
    listed = exp.Filter(this=values, expression=exp.Where(this=known))
    place = cast(exp.Literal.number(str(where)), "DOUBLE")
    return call("tidemill_percentile", call("list_sort", listed), place), "double"


def neighbour(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return another row's value; by an offset that is a literal."""
    offset = node.args.get("offset")
    if offset is not None and not isinstance(offset, exp.Literal):
        raise refuse(f"{name_of(node)} by what a column says")
    default = node.args.get("default")
    result = types[0] if default is None else common([types[0], types[-1]])
    if result is None:
        raise refuse(f"{name_of(node)} with a default of another type")
    return node, result


def number_of_row(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return row_number, rank or dense_rank."""
    return node, "int"
