"""One question over HTTP: JSON out, msgpack back, errors as those of the package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

from tidemill.errors import RequestError, StoreError
from tidemill.online.client.connection_pool import ConnectionPool, Response
from tidemill.online.extras import require_serve

PATH = "/v1/features"


def is_url(address: str) -> bool:
    """Return whether a server is there, and not a store."""
    return address.startswith(("http://", "https://"))


def pool(url: str, token: str | None, seconds: float, connections: int) -> ConnectionPool:
    """Return connections for threads."""
    require_serve()
    return ConnectionPool(url, _headers(token), seconds, connections)


def async_client(url: str, token: str | None, seconds: float, connections: int) -> Any:
    """Return httpx's client, for an event loop."""
    require_serve()
    import httpx

    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    return httpx.AsyncClient(
        base_url=url,
        headers=_headers(token),
        timeout=seconds,
        transport=httpx.AsyncHTTPTransport(retries=1, limits=limits),
    )


def _headers(token: str | None) -> dict[str, str]:
    from tidemill.online.answers.wire_format import JSON, MSGPACK

    headers = {"accept": MSGPACK, "content-type": JSON}
    return {**headers, "authorization": f"Bearer {token}"} if token else headers


def ask(pool: ConnectionPool, path: str, document: Mapping[str, Any] | None = None) -> Any:
    """Return what a path answers, to a document if there is one."""
    method, body = ("GET", None) if document is None else ("POST", _body(document))
    try:
        response = pool.request(method, path, body)
    except (OSError, HTTPException) as error:
        raise _unreachable(pool.url, error) from error
    return _answer(response, pool.url)


async def ask_async(client: Any, path: str, document: Mapping[str, Any] | None = None) -> Any:
    """Return what a path answers, to a document if there is one."""
    import httpx

    url = str(client.base_url)
    try:
        if document is None:
            response = await client.get(path)
        else:
            response = await client.post(path, content=_body(document))
    except httpx.TransportError as error:
        raise _unreachable(url, error) from error
    kind = response.headers.get("content-type", "")
    return _answer((response.status_code, kind, response.content), url)


def _body(document: Mapping[str, Any]) -> bytes:
    from tidemill.online.answers.wire_format import as_json

    return as_json(document)


def _answer(response: Response, url: str) -> Any:
    from tidemill.online.answers.wire_format import MSGPACK, from_msgpack

    status, kind, body = response
    if status == 200 and kind == MSGPACK:
        return from_msgpack(body)
    raise _refused(status, body, url)


def _refused(status: int, body: bytes, url: str) -> Exception:
    try:
        said = dict(json.loads(body)["error"])
        message, where, expected = str(said["message"]), said["where"], said["expected"]
    except (ValueError, KeyError, TypeError):
        return StoreError(
            f"HTTP status {status}, and no answer of the prediction API",
            where=url,
            expected="the URL of `tidemill serve`",
        )
    if status >= 500:
        return StoreError(message, where=where, expected=expected)
    return RequestError(message, status=status, where=where, expected=expected)


def _unreachable(url: str, error: Exception) -> StoreError:
    return StoreError(
        f"the prediction API does not answer: {type(error).__name__} {error}".rstrip(),
        where=url,
        expected="`tidemill serve` at this address",
    )
