"""What rules are made of: an expression and the types of its operands go in, DuckDB's and its type
come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from tidemill.query.engines.spark_types import common, family

Types = Sequence[str]


Rule = Callable[[exp.Expr, Types], "tuple[exp.Expr, str]"]


class UntranslatableError(Exception):
    """A statement, or a part of it, that DuckDB may not answer as Spark does; never shown as it
    is."""


def refuse(what: str) -> UntranslatableError:
    """Return the error that names what cannot be translated."""
    return UntranslatableError(what)


def name_of(node: exp.Expr) -> str:
    """Return how an expression is called in a message."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key


def call(name: str, *arguments: exp.Expr | str | int) -> exp.Anonymous:
    """Return a call of one of DuckDB's functions, its name as it stands."""
    return exp.Anonymous(
        this=name,
        expressions=[exp.convert(a) if isinstance(a, str | int) else a for a in arguments],
    )


def cast(node: exp.Expr, to: str) -> exp.Cast:
    """Return the expression as another of DuckDB's types."""
    return exp.Cast(this=node, to=exp.DataType.build(to, dialect="duckdb"))


def stop(why: str, at: exp.Expr, type_: str) -> exp.Expr:
    """Return what is an error in DuckDB for the value of an expression, which is not null; of a
    type. It has no word for that which it takes in every place."""
    said = exp.DPipe(this=exp.Literal.string(f"{why}: "), expression=cast(at.copy(), "VARCHAR"))
    return cast(cast(exp.Paren(this=said), "BIGINT"), type_)


def in_parens(node: exp.Expr) -> exp.Expr:
    """Return the expression as an operand."""
    return exp.Paren(this=node) if isinstance(node, exp.Binary | exp.Neg | exp.Case) else node


def expect(node: exp.Expr, types: Types, *families: str) -> None:
    """Refuse an operand of another family."""
    if not types or family(types[0]) not in families:
        raise refuse(f"{name_of(node)} of {', '.join(types) or 'nothing'}")


def common_number(node: exp.Expr, types: Types) -> str:
    """Return the type that numbers have together."""
    result = common(types)
    if result is None or family(result) not in ("whole", "double", "void"):
        raise refuse(f"{name_of(node)} of {' and '.join(types)}")
    return result
