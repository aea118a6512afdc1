"""What the statements of `sql/training` list: a view's terms at the edges of a spine's rows.

    terms that add up     running sums (see `training.by_event_time.running_sums`)
    the others            merged from the bucket rows of the window: whole hours, added up first,
                          and minutes at its two ends

Times are seconds since 1970 here: `edge` is the end of the windows of a row of the spine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidemill.features import FeatureView
from tidemill.features.columns import Column, Term
from tidemill.features.windows import BEGINNING_SECONDS, Window
from tidemill.lake.statements import window_rows
from tidemill.lake.statements.window_rows import whole_seconds

_NOTHING = "CAST(0 AS BIGINT)"


def needed(view: FeatureView) -> tuple[Term, ...]:
    """Return the terms that the view's features are computed from, each once."""
    terms = (term for column in view.shown for term in _used(column))
    return tuple(dict.fromkeys(terms))


def _used(column: Column) -> Iterator[Term]:
    """Yield the terms that an expression of the column names; the print of a sketch is in none."""
    text = column.result + column.overflow
    return (term for place, term in enumerate(column.terms) if f"{{{place}}}" in text)


def adds_up(term: Term) -> bool:
    """Return whether the term is a difference of two running sums."""
    partial = term.partial
    counted = partial.type == "BIGINT" or partial.type.startswith("DECIMAL")
    return partial.additive and counted and partial.part.empty == "0"


def name_of(term: Term) -> str:
    """Return the name of the column that holds a term."""
    return f"__{term.name}"


def start_of(window: Window) -> str:
    """Return the SQL of the second at which a window starts at an edge."""
    if window.period is None:
        return f"__edge - {whole_seconds(window.reach)}"
    return f"unix_seconds({window_rows.start(window, 'timestamp_seconds(__edge)')})"


def start_name(window: Window) -> str:
    """Return the name of the column that tells where a window of a period starts."""
    return f"__start_{window.text}"


def lists(view: FeatureView) -> dict[str, str]:
    """Return the lists that the statements of `sql/training` name."""
    terms = needed(view)
    added = list(dict.fromkeys(term.partial.name for term in terms if adds_up(term)))
    others = [term for term in terms if not adds_up(term)]
    merged = list(dict.fromkeys(term.partial for term in others))
    periods = dict.fromkeys(t.window for t in terms if adds_up(t) and t.window.period)
    return {
        "added_partials": _comma(added or [f"{_NOTHING} AS __nothing"]),
        "nothing_added": _comma(f"NULL AS {name}" for name in added or ["__nothing"]),
        "period_starts": _listed(f"{start_of(w)} AS {start_name(w)}" for w in periods),
        "no_period_starts": _listed(f"NULL AS {start_name(w)}" for w in periods),
        "edge_hours_of_spine": ", ".join(
            f"({second}) DIV 3600" for second in _ends(others) or ["__edge"]
        ),
        "horizon_seconds": str(max((whole_seconds(t.window.reach) for t in others), default=0)),
        "base_day": f"array({BEGINNING_SECONDS} DIV 86400)"
        if any(term.window.is_lifetime for term in others)
        else "array()",
        "range_partials": _comma([*(p.name for p in merged)] or [f"{_NOTHING} AS __nothing"]),
        "range_hours": _comma(
            [f"{p.merged()} AS {p.name}" for p in merged] or [f"{_NOTHING} AS __nothing"]
        ),
        "range_terms": _comma(
            [f"{t.partial.merged(_inside(t.window))} AS {name_of(t)}" for t in others]
            or ["max(__nothing) AS __nothing"]
        ),
        "values_of_terms": _comma(f"{value_of(c)} AS {c.name}" for c in view.shown),
        "shown_names": ", ".join(c.name for c in view.shown),
        "no_values": _comma(f"CAST(NULL AS {c.type}) AS {c.name}" for c in view.shown),
        "newest_values": _comma(f"__newest.{c.name} AS {c.name}" for c in view.shown),
        "answered_values": _comma(
            f"CASE WHEN __answer.kind = 'row' THEN __answer.{c.name} "
            f"ELSE CAST({c.empty} AS {c.type}) END AS {c.name}"
            for c in view.shown
        ),
    }


def _ends(terms: Iterable[Term]) -> list[str]:
    """Return the SQL of the seconds at which windows end and start, each once."""
    windows = dict.fromkeys(term.window for term in terms)
    return list(dict.fromkeys(side(w) for w in windows for side in (_end_of, start_of)))


def _end_of(window: Window) -> str:
    return f"__edge - {whole_seconds(window.offset)}"


def _inside(window: Window) -> str:
    """Return the condition of a row to count in a window: an hour row where the window holds all of
    it, a minute row where no hour row stands for it."""
    start, end = start_of(window), _end_of(window)
    return (
        f"__moment >= {start} AND __last < {end} "
        f"AND (__is_hour OR __hour * 3600 < {start} OR __hour * 3600 + 3600 > {end})"
    )


def value_of(column: Column) -> str:
    """Return a feature's value from its terms: the empty one where a term that does not add up has
    no bucket row to be merged from, of which Spark cannot compute every result."""
    value = column.value(name_of)
    if not all(adds_up(term) for term in _used(column)):
        value = f"CASE WHEN __in_range THEN {value} ELSE {column.empty} END"
    return f"CAST({value} AS {column.type})"


def _listed(items: Iterable[str]) -> str:
    """Return more columns of a list that has some."""
    return "".join(f",\n  {item}" for item in items)


def _comma(items: Iterable[str]) -> str:
    return ",\n  ".join(items)
