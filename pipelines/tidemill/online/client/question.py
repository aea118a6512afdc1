"""What a client asks, as the document that the API takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Keys = Sequence[Mapping[str, Any] | Sequence[Any]]
Features = Sequence[str] | None
Contains = Mapping[str, Any] | None


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
    return [dict(key) if isinstance(key, Mapping) else list(key) for key in keys]


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with lists for what are tuples or sets, and dictionaries for mappings."""
    return {name: _plain_value(value) for name, value in options.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _plain(value)
    return list(value) if isinstance(value, tuple | set | frozenset) else value
