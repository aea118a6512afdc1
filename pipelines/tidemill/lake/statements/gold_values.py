"""The values of gold's columns, and how they are compared, as SQL expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tidemill.features import FeatureView
from tidemill.features.aggregates import exact_sums
from tidemill.features.columns import Column, Term
from tidemill.lake.statements.window_rows import inside, sign_name


def value(column: Column, by_hours: bool) -> str:
    """Return a feature's expression over the buckets of the horizon."""
    return value_by(column.value, by_hours)


def value_by(of: Callable[[Callable[[Term], str]], str], by_hours: bool) -> str:
    """Return an expression over terms, each merged over the rows that its window holds."""
    return of(lambda term: term.partial.merged(inside(term.window, by_hours)))


def difference(column: Column) -> str:
    """Return what bucket rows add to a term; a product with an INT would round a long decimal."""
    partial, sign = column.partial, sign_name(column.window)
    if partial.part.adds:
        return exact_sums.difference(partial.name, column.type, sign)
    if not column.type.startswith("DECIMAL"):
        return f"sum({partial.name} * {sign})"
    signed = f"CASE {sign} WHEN 1 THEN {partial.name} WHEN -1 THEN -{partial.name} ELSE 0 END"
    return f"sum({signed})"


def moves(column: Column) -> str:
    """Return the condition of a difference to change its term."""
    changed = f"{column.name} <> 0"
    return f"{changed} OR {column.name} IS NULL" if column.partial.part.adds else changed


def total(column: Column) -> str:
    """Return the SQL of a term from what gold holds and the difference to it."""
    if column.partial.part.adds:
        return exact_sums.together(column.name, column.type)
    return f"sum({column.name})"


def of_sums(columns: Iterable[Column], terms: Iterable[Column]) -> Iterator[str]:
    """Yield the gold columns, as expressions over the columns that are terms."""
    kept = {column.terms[0]: column.name for column in terms}
    for column in columns:
        if column.is_term:
            yield column.name
        elif all(term in kept for term in column.terms):
            yield f"{column.value(kept.__getitem__)} AS {column.name}"
        else:
            yield f"NULL AS {column.name}"  # a view that does not add up has no such statement


def or_empty(side: str, column: Column, view: FeatureView) -> str:
    """Return the value of a side, the empty one where it has no row; null may be an overflow."""
    value = f"{side}.{column.name}"
    if column.overflow and column.empty != "NULL":
        return f"CASE WHEN {side}.{view.keys[0]} IS NULL THEN {column.empty} ELSE {value} END"
    return f"coalesce({value}, {column.empty})"


def differs(columns: Iterable[Column], view: FeatureView) -> str:
    """Return the condition of a row of gold to have another value than the fresh one."""
    return "\n  OR ".join(
        f"{or_empty('fresh', c, view)} IS DISTINCT FROM {or_empty('gold', c, view)}"
        for c in columns
    )


def is_wrong(column: Column, view: FeatureView) -> str:
    """Return the condition of gold's value to be wrong, within what a sketch may be off."""
    sides = or_empty("fresh", column, view), or_empty("gold", column, view)
    return column.is_off(*sides, f"fresh.__bounds_{column.name}")
