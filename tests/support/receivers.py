"""A web address that takes messages, in this process: it keeps them, and answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Message:
    """What was posted, and what was answered."""

    headers: dict[str, str]
    body: bytes
    status: int

    @property
    def said(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def alert(self) -> tuple[str, str, str]:
        """Its type, the alert's name and the profile."""
        data = self.said["data"]
        return self.said["type"], data["alert"], data["keys"]["profile_id"]


@dataclass
class Receiver:
    """The messages of an address, oldest first. `answers` are the next statuses, then 204."""

    url: str = ""
    messages: list[Message] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)  # of each answer

    @property
    def taken(self) -> list[Message]:
        return [one for one in self.messages if one.status < 300]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Listen on a port of 127.0.0.1 until the end."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = receiver.answers.pop(0) if receiver.answers else 204
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.messages.append(Message(headers, body, status))
            self.send_response(status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/alerts"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
