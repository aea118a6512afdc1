"""Conditions that a plain record and a parsed one share, as SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from tidemill.lake.parameters import quoted
from tidemill.pipeline.silver.validation.rules import Range, Rule


def in_range(number: str, within: Range) -> str:
    """Return the condition of a number to be in a range; a number that its type cannot hold is
    null, and in none."""
    parts = []
    if within.limit is not None:
        parts.append(f"abs({number}) < {_number(within.limit)}")
    if within.low is not None:
        parts.append(f"{number} >= {_number(within.low)}")
    if within.high is not None:
        parts.append(f"{number} <= {_number(within.high)}")
    return f"coalesce({' AND '.join(parts)}, FALSE)" if parts else f"{number} IS NOT NULL"


def _number(said: int | float) -> str:
    return repr(said) if isinstance(said, int) else f"{said!r}D"


def in_time(time: str, by_reason: Mapping[str, Rule]) -> str:
    """Return the condition of a time to be neither too old nor in the future."""
    return f"{time} BETWEEN {oldest(by_reason['too_old'])} AND {newest(by_reason['in_future'])}"


def newest(rule: Rule) -> str:
    """Return the newest time that an event may have, by the rule `in_future`."""
    return f"ingested_at + {_interval(rule.age)}"


def oldest(rule: Rule) -> str:
    """Return the oldest time that an event may have, by the rule `too_old`."""
    usual = _interval(rule.age)
    if not rule.longer:
        return f"ingested_at - {usual}"
    cases = (
        f"WHEN ingested_at <= timestamp_micros({until}) THEN {_interval(history)}"
        for until, history in rule.longer
    )
    return f"ingested_at - CASE {' '.join(cases)} ELSE {usual} END"


def _interval(age: timedelta) -> str:
    return f"INTERVAL '{int(age.total_seconds())}' SECOND"


def listed(values: Iterable[str]) -> str:
    """Return texts as a list of literals."""
    return ", ".join(map(quoted, values))
