"""A statement in Spark's SQL as one for DuckDB, which answers the same, or a word on why not.

text ─► syntax tree ─► columns qualified, stars expanded ─► each part translated ─► DuckDB's text
        (sqlglot)      (sqlglot, by Spark's rules)          (`clauses`, `rules`)    (sqlglot)

Nothing is passed on that is not known here: a clause, an option of one or a function that has no
rule makes the whole statement Spark's. Null comes first in Spark's order, and last in a descending
one, so each ordering says where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from tidemill.query.engines.clauses import Columns, QueryClauses
from tidemill.query.engines.expression_rules.rule import refuse
from tidemill.query.engines.spark_types import SPARK

Find = Callable[[str], Columns | None]  # the columns of a table or view, None where there is none

_MOST_KEPT = 256  # translations, in a process that goes on
_kept: dict[str, tuple[Mapping[str, Columns], Translation]] = {}  # by their text
_NAMED = (exp.Count, exp.Sum, exp.Min, exp.Max)


@dataclass(frozen=True)
class Translation:
    """A statement for DuckDB, the names of its columns as Spark has them, their types in Spark, and
    the tables and views that it reads."""

    sql: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    reads: tuple[str, ...]

    @property
    def columns(self) -> Columns:
        """The types by name."""
        return dict(zip(self.names, self.types, strict=True))


class NoSuchTableError(Exception):
    """A statement reads a table that there is not."""


def translate(text: str, find: Find) -> Translation:
    """Return the statement for DuckDB; UntranslatableError where it would answer otherwise,
    NoSuchTableError where it reads a table that `find` does not know.

    A text is translated once for as long as its tables have the same columns: a page asks the same
    questions each time that it is looked at.
    """
    kept = _kept.get(text)
    if kept and all(_same(find(name), columns) for name, columns in kept[0].items()):
        return kept[1]
    tree = _parsed(text)
    reads = tuple(dict.fromkeys(_tables(tree)))
    known: dict[str, Columns] = {}
    for name in reads:
        columns = find(name)
        if columns is None:
            raise NoSuchTableError(name)
        known[name] = columns
    names = _names(tree)
    qualified = _qualified(tree, known)
    result = QueryClauses({}, known).translate(qualified, {})
    found = tuple(result)
    sql = qualified.sql(dialect="duckdb", comments=False)
    translation = Translation(sql, names or found, tuple(result.values()), reads)
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    _kept[text] = known, translation
    return translation


def _same(found: Columns | None, before: Columns) -> bool:
    """Return whether a table has the columns that it had, in their order, which a star takes."""
    return found is not None and [*found.items()] == [*before.items()]


def _parsed(text: str) -> exp.Query:
    if "\\" in text or "${" in text:
        raise refuse("a text with an escape, or a setting")
    try:
        tokens = sqlglot.tokenize(text, read=SPARK)
        first = tokens[0].text.upper()
        if first not in ("SELECT", "WITH"):
            raise refuse(first)
        strings = [token for token in tokens if token.token_type.name == "STRING"]
        if any(one.end + 1 == other.start for one, other in pairwise(strings)):
            raise refuse("a quote within a text")  # sqlglot reads 'it''s' as two texts
        tree = sqlglot.parse_one(text, read=SPARK)
    except SqlglotError as error:
        raise refuse("a statement that sqlglot does not read") from error
    if not isinstance(tree, exp.Query):
        raise refuse(tree.key.upper())
    return tree


def _tables(tree: exp.Expr) -> Iterator[str]:
    """Yield the tables that are read, in lower case; a name of WITH hides one."""
    named = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if table.args.get("db") is not None or not isinstance(table.this, exp.Identifier):
            raise refuse(f"the table {table.sql(SPARK)}")
        if table.name.lower() not in named:
            yield table.name.lower()


def _qualified(tree: exp.Expr, known: Mapping[str, Columns]) -> exp.Expr:
    schema: dict[str, object] = {name: dict(columns) for name, columns in known.items()}
    try:
        return qualify(tree, schema=schema, dialect=SPARK)
    except SqlglotError as error:
        raise refuse(str(error).splitlines()[0]) from error


def _names(tree: exp.Query) -> tuple[str, ...] | None:
    """Return the names that Spark gives to the columns, and give them; None where a star brings
    them."""
    outer = tree
    while isinstance(outer, exp.SetOperation):
        outer = outer.this
    if not isinstance(outer, exp.Select):
        raise refuse("a query in parentheses")
    if any(each.is_star for each in outer.expressions):
        if any(each.alias and each.alias != each.alias.lower() for each in outer.expressions):
            raise refuse("a star beside names in capitals")
        return None
    names = [_name(each) for each in outer.expressions]
    if len({name.lower() for name in names}) < len(names):
        raise refuse("two columns of one name")
    return tuple(names)


def _name(column: exp.Expr) -> str:
    """Return the name that Spark gives to a column; of expressions without an alias only to those
    of which it is plain."""
    if isinstance(column, exp.Alias):
        return str(column.alias)
    if isinstance(column, exp.Column) and column.name == column.name.lower():
        if isinstance(column.this, exp.Identifier) and not column.args.get("db"):
            return str(column.name)
    if isinstance(column, _NAMED):
        name, argument = column.key.lower(), column.this
        distinct = isinstance(argument, exp.Distinct) and len(argument.expressions) == 1
        inside = argument.expressions[0] if distinct else argument
        if isinstance(inside, exp.Star):
            return f"{name}(1)"
        if isinstance(inside, exp.Column) and inside.name == inside.name.lower():
            return f"{name}({'DISTINCT ' if distinct else ''}{inside.name})"
    raise refuse(f"{column.sql(SPARK)} without a name")
