"""One question over HTTP: JSON out, msgpack back, errors as those of the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemill.errors import RequestError, StoreError
from tidemill.online.extras import require_serve

PATH = "/v1/features"


def is_url(address: str) -> bool:
    """Return whether a server is there, and not a store."""
    return address.startswith(("http://", "https://"))


def client(url: str, token: str | None, seconds: float, connections: int) -> Any:
    """Return httpx's client, whose connections are kept."""
    return _made("Client", "HTTPTransport", url, token, seconds, connections)


def async_client(url: str, token: str | None, seconds: float, connections: int) -> Any:
    """Return httpx's client for an event loop."""
    return _made("AsyncClient", "AsyncHTTPTransport", url, token, seconds, connections)


def _made(
    kind: str, transport: str, url: str, token: str | None, seconds: float, connections: int
) -> Any:
    require_serve()
    import httpx

    from tidemill.online.answers.wire_format import JSON, MSGPACK

    headers = {"accept": MSGPACK, "content-type": JSON}
    if token:
        headers["authorization"] = f"Bearer {token}"
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    return getattr(httpx, kind)(
        base_url=url,
        headers=headers,
        timeout=seconds,
        transport=getattr(httpx, transport)(retries=1, limits=limits),
    )


def post(client: Any, document: Mapping[str, Any]) -> Any:
    """Return the answer to a question."""
    import httpx

    try:
        return _answer(client.post(PATH, content=_body(document)))
    except httpx.TransportError as error:
        raise _unreachable(client, error) from error


def get(client: Any, path: str) -> Any:
    """Return what a path answers."""
    import httpx

    try:
        return _answer(client.get(path))
    except httpx.TransportError as error:
        raise _unreachable(client, error) from error


async def post_async(client: Any, document: Mapping[str, Any]) -> Any:
    """Return the answer to a question."""
    import httpx

    try:
        return _answer(await client.post(PATH, content=_body(document)))
    except httpx.TransportError as error:
        raise _unreachable(client, error) from error


async def get_async(client: Any, path: str) -> Any:
    """Return what a path answers."""
    import httpx

    try:
        return _answer(await client.get(path))
    except httpx.TransportError as error:
        raise _unreachable(client, error) from error


def _body(document: Mapping[str, Any]) -> bytes:
    from tidemill.online.answers.wire_format import as_json

    return as_json(document)


def _answer(response: Any) -> Any:
    from tidemill.online.answers.wire_format import MSGPACK, from_msgpack

    if response.status_code == 200 and response.headers.get("content-type") == MSGPACK:
        return from_msgpack(response.content)
    raise _refused(response)


def _refused(response: Any) -> Exception:
    status: int = response.status_code
    try:
        said = dict(response.json()["error"])
        message, where, expected = str(said["message"]), said["where"], said["expected"]
    except (ValueError, KeyError, TypeError):
        return StoreError(
            f"HTTP status {status}, and no answer of the prediction API",
            where=str(response.url),
            expected="the URL of `tidemill serve`",
        )
    if status >= 500:
        return StoreError(message, where=where, expected=expected)
    return RequestError(message, status=status, where=where, expected=expected)


def _unreachable(client: Any, error: Exception) -> StoreError:
    return StoreError(
        f"the prediction API does not answer: {type(error).__name__} {error}".rstrip(),
        where=str(client.base_url),
        expected="`tidemill serve` at this address",
    )
