"""A schema registry as a process of tests sees it: a real HTTP server with Confluent's paths."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Registry:
    """Its subjects: each version an id and a schema; `broken` makes it answer 500."""

    url: str = ""
    subjects: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    broken: bool = False
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str) -> tuple[int, object]:
        _, kind, subject, *rest = path.split("/")
        versions = self.subjects.get(subject)
        self.asked.append(path)
        if self.broken:
            return 500, {"message": "no leader"}
        if kind == "schemas":
            known = {str(n): text for all_ in self.subjects.values() for n, text in all_}
            text = known.get(rest[0])
            return (200, {"schema": text}) if text else (404, {"message": "Schema not found"})
        if versions is None:
            return 404, {"message": "Subject not found."}
        if len(rest) == 1:
            return 200, [*range(1, len(versions) + 1)]
        number, schema = versions[int(rest[1]) - 1]
        return 200, {"subject": subject, "id": number, "schema": schema}


@contextmanager
def serving() -> Iterator[Registry]:
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = registry.answer(self.path)
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, daemon=True).start()
        yield registry
        server.shutdown()
