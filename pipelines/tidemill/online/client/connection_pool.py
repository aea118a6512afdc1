"""Connections to a server that are kept and shared by threads, on Python's own `http.client`.

A client of httpx takes a millisecond of CPU for each request, more than the server; this a tenth.
"""

from __future__ import annotations

import http.client
import queue
import ssl
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit

from tidemill.errors import UsageError

Response = tuple[int, str, bytes]  # status, content type, body
_GONE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class ConnectionPool:
    """At most so many connections to one server; whoever comes when all are taken waits."""

    def __init__(self, url: str, headers: Mapping[str, str], seconds: float, connections: int):
        """Keep the address; UsageError where it is none."""
        parts = urlsplit(url)
        if not parts.hostname:
            raise UsageError(f"{url!r} is no address", expected="http://HOST:PORT")
        self.url = url
        self._host, self._port = parts.hostname, parts.port
        self._prefix, self._headers, self._seconds = parts.path.rstrip("/"), headers, seconds
        self._secure = ssl.create_default_context() if parts.scheme == "https" else None
        self._idle: queue.LifoQueue[http.client.HTTPConnection] = queue.LifoQueue()
        self._free = threading.BoundedSemaphore(connections)

    def request(self, method: str, path: str, body: bytes | None = None) -> Response:
        """Return the response; OSError or HTTPException where there is none.

        A connection that was kept may have been closed by the server meanwhile. Requests change
        nothing, so it is asked once more, on a new one.
        """
        if not self._free.acquire(timeout=self._seconds):
            raise TimeoutError("every connection is taken")
        try:
            connection, is_kept = self._connection()
            try:
                return self._exchanged(connection, method, path, body)
            except _GONE:
                if not is_kept:
                    raise
            return self._exchanged(self._made(), method, path, body)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close the connections that nobody has."""
        while not self._idle.empty():
            self._idle.get_nowait().close()

    def _exchanged(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None
    ) -> Response:
        try:
            connection.request(method, self._prefix + path, body, self._headers)
            response = connection.getresponse()
            found = response.status, response.headers.get("content-type", ""), response.read()
        except BaseException:
            connection.close()  # what is left of an answer is not the next one
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.put(connection)
        return found

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        """Return a connection, and whether it was kept."""
        try:
            return self._idle.get_nowait(), True
        except queue.Empty:
            return self._made(), False

    def _made(self) -> http.client.HTTPConnection:
        if self._secure:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._seconds, context=self._secure
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._seconds)
