"""How the API says no: a status and `{"error": {...}}`, as the command line does with --json."""

from __future__ import annotations

import orjson

from tidemill.errors import RequestError, TidemillError

Body = bytes
UNAVAILABLE = 503
HEADERS = {
    401: {"www-authenticate": "Bearer"},
    429: {"retry-after": "1"},
    503: {"retry-after": "1"},
}


def body_of(kind: str, message: str, where: str | None = None, expected: str | None = None) -> Body:
    """Return the body of a refusal."""
    error = {"kind": kind, "message": message, "where": where, "expected": expected}
    return orjson.dumps({"error": error})


def body_of_error(error: TidemillError) -> Body:
    """Return the body that tells an error."""
    return orjson.dumps({"error": error.as_dict()})


def status_of(error: TidemillError) -> int:
    """Return the status that an error has over HTTP: its own, else that nothing can be answered."""
    return error.status if isinstance(error, RequestError) else UNAVAILABLE


DEFECT = body_of("defect", "a defect of the server; its log names the place")
