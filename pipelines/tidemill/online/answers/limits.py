"""What one request may ask for, how long it may take, and how old an answer may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tidemill.errors import UsageError
from tidemill.features.suggestions import did_you_mean
from tidemill.features.windows import duration

_TIMES = frozenset({"seconds", "stale_after", "refuse_after"})


@dataclass(frozen=True)
class Limits:
    """The limits of a server.

    body_bytes     of a request's body; beyond: 413
    keys           of one request, at least 1; beyond: 422
    text           letters of a text in a request, be it a name or a key; beyond: 422
    values         that one `contains` asks a filter for; beyond: 422
    seconds        until a request is answered, its body read; beyond: 408 or 503
    concurrent     requests under way; beyond: 429
    stale_after    seconds after a view's as_of from which on its answers are `stale`
    refuse_after   seconds after as_of from which on they are none; all views beyond: 503
    """

    body_bytes: int = 1 << 20
    keys: int = 1000
    text: int = 1024
    values: int = 100
    seconds: float = 2.0
    concurrent: int = 64
    stale_after: float = 600.0
    refuse_after: float = 86_400.0

    def __post_init__(self) -> None:
        """Raise UsageError for a limit that lets nothing through."""
        for each in fields(self):
            value, least = getattr(self, each.name), 0.001 if each.name in _TIMES else 1
            if not value >= least:
                raise UsageError(
                    f"{value} is no limit", where=each.name, expected=f"at least {least}"
                )
        if self.refuse_after < self.stale_after:
            raise UsageError(
                f"answers would be refused after {self.refuse_after:g} s, before they are stale",
                where="refuse_after",
                expected=f"at least stale_after, {self.stale_after:g} s",
            )

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Limits:
        """Return the limits with what is said instead of a default, lengths of time as seconds or
        as texts such as `10m`; UsageError for an unknown one."""
        known = [field.name for field in fields(cls)]
        for name in said:
            if name not in known:
                raise UsageError(
                    f"unknown limit {name!r}{did_you_mean(name, known)}", where="limits"
                )
        return cls(**{name: _number(name, value) for name, value in said.items()})


def _number(name: str, value: Any) -> Any:
    if name in _TIMES and isinstance(value, str):
        return duration(value).total_seconds()
    return value
