"""What OpenAPI says of requests and answers. Nothing is validated by these: a hot path has no time
for models, and a test holds the server's answers against them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

AS_OF, AGE = "2026-11-21T10:05:00Z", 12.3


class Entry(BaseModel):
    """One key's answer."""

    key: Any = Field(description="The key as it was asked")
    found: bool = Field(description="False: an unknown key, whose values are the empty ones")
    as_of: str = Field(description="The end of the windows that the values are of")
    age_seconds: float = Field(description="Now minus as_of")
    stale: bool = Field(description="Whether the age is past the server's limit")
    values: dict[str, Any] = Field(description="Each feature's value")
    contains: dict[str, bool | list[bool]] | None = Field(
        None, description="Of each filter that was asked: whether it may hold the value"
    )


class ViewAnswer(BaseModel):
    """The answer of one view; `rows` has the order of the request's keys."""

    view: str
    gold_version: int = Field(description="The version of gold that is published")
    mode: str | None = Field(None, description="`slices` where those answered, not gold")
    through: int | None = Field(None, description="Of slices: the last batch of clean that counts")
    visible_at: str | None = Field(None, description="Of slices: when that became visible")
    as_of: str
    age_seconds: float
    stale: bool
    rows: list[Entry]


class ManyAnswer(BaseModel):
    """The answers of several views, by name."""

    views: dict[str, ViewAnswer]


class ViewDescription(BaseModel):
    """What there is to ask of a view, and how fresh it is."""

    view: str
    gold_version: int
    as_of: str
    age_seconds: float
    stale: bool
    keys: dict[str, str] = Field(description="The columns of a key, and their types")
    features: dict[str, str] = Field(description="The features, and their types")
    empty: dict[str, Any] = Field(description="The values of an unknown key")
    filters: list[str] = Field(description="The features that `contains` can ask")


class ViewList(BaseModel):
    """The views that are published."""

    views: list[ViewDescription]


class Problem(BaseModel):
    """What was refused: where, and what would have been right."""

    kind: str
    message: str
    where: str | None
    expected: str | None


class Refusal(BaseModel):
    """The body of every status but 200."""

    error: Problem


class Health(BaseModel):
    """Whether the process lives, or can answer."""

    status: str


_KEYS = {
    "type": "array",
    "minItems": 1,
    "maxItems": 1000,
    "items": {"anyOf": [{"type": "object"}, {"type": "array"}]},
    "description": "Each an object of the key's columns, or the list of their values in order",
}
_OF_VIEW = {
    "features": {
        "type": ["array", "null"],
        "items": {"type": "string"},
        "description": "Names of features; without them all",
    },
    "contains": {
        "type": ["object", "null"],
        "description": "Of filters: a value, or a list of values, that each may hold",
    },
    "mode": {
        "enum": ["gold", "slices", None],
        "description": "What answers: gold as it was published, or slices of events, seconds old; "
        "without it slices where the view has some",
    },
}
REQUEST: dict[str, Any] = {
    "oneOf": [
        {
            "title": "One view",
            "type": "object",
            "required": ["view", "keys"],
            "additionalProperties": False,
            "properties": {"view": {"type": "string"}, "keys": _KEYS, **_OF_VIEW},
        },
        {
            "title": "Several views of one entity",
            "type": "object",
            "required": ["views", "keys"],
            "additionalProperties": False,
            "properties": {
                "keys": _KEYS,
                "views": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": _OF_VIEW,
                    },
                },
            },
        },
    ]
}
_KEY = {"profile_id": "profile-1", "gti": "title-1"}
REQUESTS = {
    "one view": {
        "value": {"view": "engagement", "keys": [_KEY], "features": ["view_count_1h"]},
    },
    "keys as lists": {"value": {"view": "engagement", "keys": [["profile-1", "title-1"]]}},
    "several views": {
        "value": {"views": {"engagement": {}, "profiles": {}}, "keys": [_KEY]},
    },
    "a filter": {
        "value": {
            "view": "product_signals",
            "keys": [{"product_id": "p1"}],
            "contains": {"user_id_cuckoo_1d": "u1"},
        }
    },
}
_WHEN = {"as_of": AS_OF, "age_seconds": AGE, "stale": False}
_ROW = {"key": _KEY, "found": True, **_WHEN, "values": {"view_count_1h": 31}}
ANSWER = {"view": "engagement", "gold_version": 12, **_WHEN, "rows": [_ROW]}
REFUSALS = {
    401: "No valid token",
    404: "Unknown view",
    408: "The body did not come in time",
    413: "The body is too large",
    422: "The request cannot be answered as it is; `where` says which part of it",
    429: "Too many requests at once",
    503: "The store does not answer, or all that was asked is too old",
}
EXAMPLE_OF_REFUSAL = {
    "error": {
        "kind": "request",
        "message": "has 0 keys",
        "where": "keys",
        "expected": "1 to 1000",
    }
}
