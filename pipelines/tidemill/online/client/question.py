"""What a client asks, as the document that the API takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

Keys = Sequence[Mapping[str, Any] | Sequence[Any]]
Features = Sequence[str] | None
Contains = Mapping[str, Any] | None
_PYTHONS = frozenset((str, int, float, bool, type(None)))


def of_view(
    view: str, keys: Keys, features: Features, contains: Contains, mode: str | None
) -> dict[str, Any]:
    """Return the document that asks one view."""
    document: dict[str, Any] = {"view": view, "keys": _listed(keys)}
    if features is not None:
        document["features"] = list(features)
    if contains:
        document["contains"] = _plain(contains)
    if mode is not None:
        document["mode"] = mode
    return document


def of_views(views: Mapping[str, Mapping[str, Any]], keys: Keys) -> dict[str, Any]:
    """Return the document that asks several views."""
    return {"views": {name: _plain(each) for name, each in views.items()}, "keys": _listed(keys)}


def _listed(keys: Keys) -> list[Any]:
    return [_mapped(key) if isinstance(key, Mapping) else list(map(_sent, key)) for key in keys]


def _mapped(key: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _sent(value) for name, value in key.items()}


def _sent(value: Any) -> Any:
    """Return a key's value as the API takes it: a decimal as text, a number of NumPy, as frames
    have them, as Python's own."""
    if type(value) in _PYTHONS:
        return value
    if isinstance(value, Decimal):
        return str(value)
    item = getattr(value, "item", None)
    return item() if callable(item) else value


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with lists for what are tuples or sets, and dictionaries for mappings."""
    return {name: _plain_value(value) for name, value in options.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _plain(value)
    return list(value) if isinstance(value, tuple | set | frozenset) else value
