"""What a request asks for, read from its body by hand: a hot path has no time for models.

    {"view": "engagement", "keys": [...], "features": [...], "contains": {...}, "mode": "gold"}
    {"views": {"engagement": {"features": [...]}, "profiles": {}}, "keys": [...]}

A key is an object of its columns, or the list of their values in the view's order. With `views`
each view takes from a key the columns that are its own. Messages name places, `keys[3]`, never the
values that a request brought: they may be about persons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidemill.errors import RequestError
from tidemill.features.suggestions import did_you_mean
from tidemill.online.answers.limits import Limits

MODES = ("gold", "slices")
_OF_VIEW = frozenset({"features", "contains", "mode"})
_OF_ONE = _OF_VIEW | {"view", "keys"}
_OF_MANY = frozenset({"views", "keys"})


@dataclass(frozen=True, slots=True)
class ViewQuestion:
    """What is asked of one view: some features or all, values that its filters may hold, and what
    answers, None for slices where the view has some."""

    view: str
    features: tuple[str, ...] | None
    contains: Mapping[str, Any]
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class FeatureRequest:
    """A request: its keys as they came, and a question to each view."""

    keys: list[Any]
    questions: tuple[ViewQuestion, ...]
    of_many: bool


def read(document: object, limits: Limits) -> FeatureRequest:
    """Return the request that a JSON document is; RequestError (422) says where it is none."""
    if not isinstance(document, dict):
        raise unprocessable("is no object", "body", 'such as {"view": "engagement", "keys": [...]}')
    many = "views" in document
    _known(document, _OF_MANY if many else _OF_ONE, "body")
    keys = _keys(document.get("keys"), limits)
    if not many:
        return FeatureRequest(keys, (_question(document.get("view"), document, "", limits),), False)
    views = document["views"]
    if not isinstance(views, dict) or not 0 < len(views) <= limits.values:
        expected = f'1 to {limits.values} views, such as {{"engagement": {{}}}}'
        raise unprocessable("is no object of views", "views", expected)
    questions = []
    for place, (view, options) in enumerate(views.items()):
        where = f"views[{place}]."
        if not isinstance(options, dict):
            raise unprocessable("is no object", where[:-1], '{} or {"features": [...]}')
        _known(options, _OF_VIEW, where[:-1])
        questions.append(_question(view, options, where, limits))
    return FeatureRequest(keys, tuple(questions), True)


def unprocessable(message: str, where: str, expected: str) -> RequestError:
    """Return the error of a request that is no request."""
    return RequestError(message, status=422, where=where, expected=expected)


def _keys(keys: object, limits: Limits) -> list[Any]:
    if not isinstance(keys, list):
        raise unprocessable("is no list", "keys", f"a list of 1 to {limits.keys} keys")
    if not 0 < len(keys) <= limits.keys:
        raise unprocessable(f"has {len(keys)} keys", "keys", f"1 to {limits.keys}")
    return keys


def _question(view: object, options: Mapping[str, Any], where: str, limits: Limits) -> ViewQuestion:
    if not isinstance(view, str) or not 0 < len(view) <= limits.text:
        raise unprocessable("is no name of a view", f"{where}view", "a text")
    features = options.get("features")
    if features is not None:
        features = _names(features, f"{where}features", limits)
    contains = options.get("contains") or {}
    if not isinstance(contains, dict):
        raise unprocessable("is no object", f"{where}contains", '{"a_filter": "a value"}')
    for place, values in enumerate(contains.values()):
        _values(values, f"{where}contains[{place}]", limits)
    mode = options.get("mode")
    if mode is not None and mode not in MODES:
        raise unprocessable("is no mode", f"{where}mode", " or ".join(MODES))
    return ViewQuestion(view, features, contains, mode)


def _names(names: object, where: str, limits: Limits) -> tuple[str, ...]:
    if not isinstance(names, list) or not 0 < len(names) <= limits.keys:
        raise unprocessable("is no list of features", where, "names of features, or no `features`")
    if not all(isinstance(name, str) and len(name) <= limits.text for name in names):
        raise unprocessable("is no list of names", where, "texts")
    return tuple(names)


def _values(values: object, where: str, limits: Limits) -> None:
    each = values if isinstance(values, list) else [values]
    if not 0 < len(each) <= limits.values:
        raise unprocessable(f"has {len(each)} values", where, f"1 to {limits.values}")
    for value in each:
        if not isinstance(value, str | int) or (
            isinstance(value, str) and len(value) > limits.text
        ):
            expected = f"a text of at most {limits.text} letters, a whole number, true or false"
            raise unprocessable("is nothing that a filter holds", where, expected)


def _known(document: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    for name in document:
        if name not in known:
            hint = did_you_mean(name[:64], sorted(known)).removeprefix("; ")
            raise unprocessable("has an unknown field", where, hint)
