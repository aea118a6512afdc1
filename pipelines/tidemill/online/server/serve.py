"""From what the user names to a server that runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tidemill.config.settings import Clock, Place
from tidemill.errors import UsageError
from tidemill.online.answers.feature_service import FeatureService
from tidemill.online.answers.limits import Limits
from tidemill.online.extras import require_serve
from tidemill.online.open_store import open_store
from tidemill.online.store_address import FILE_NAME, StoreAddress

HOST, PORT, TOKEN = "127.0.0.1", 8790, "TIDEMILL_TOKEN"


def ignore(url: str, views: int) -> None:
    """Do nothing with where the server listens."""


def serve(
    store: str | None = None,
    *,
    root: str | Path | None = None,
    username_env: str | None = None,
    password_env: str | None = None,
    ca_file: str | None = None,
    host: str = HOST,
    port: int = PORT,
    token_env: str = TOKEN,
    limits: Mapping[str, Any] | None = None,
    response_log: str | Path | None = None,
    on_listening: Callable[[str, int], None] = ignore,
) -> None:
    """Answer requests for features over HTTP until Ctrl-C or SIGTERM, without Spark.

    `store` is a file or a Redis by its URL, whose credentials are in the environment variables that
    `username_env` and `password_env` name; by default the file of the lake in the folder `root`,
    else in the one that TIDEMILL_ROOT names, else in `./lake`. `token_env` names the variable that
    holds the token, without which only this machine is served. `limits` are those of
    docs/serving.md, such as `{"stale_after": "5m"}`. With `response_log` what was answered is kept
    in a file. `on_listening` is told the URL and the number of published views.

    UsageError where it cannot listen, has no token for a network, or is given store and root;
    StoreError where the store does not answer; SetupError where the extra `serve` is missing.
    """
    require_serve()
    from tidemill.online.server.application import application
    from tidemill.online.server.request_metrics import RequestMetrics
    from tidemill.online.server.response_log import ResponseLog
    from tidemill.online.server.tokens import Tokens
    from tidemill.online.server.web_server import run

    chosen, tokens = Limits.of(limits or {}), Tokens.from_environment(token_env, host)
    address = StoreAddress(_store(store, root), username_env, password_env, ca_file)
    service = FeatureService(open_store(address), chosen, Clock.from_environment())
    service.look()
    metrics = RequestMetrics()
    log = ResponseLog(Path(response_log), on_dropped=metrics.dropped) if response_log else None
    listening = functools.partial(_told, on_listening, service)
    try:
        run(application(service, tokens, metrics, log), host, port, listening)
    finally:
        service.store.close()
        if log:
            log.close()


def _told(on_listening: Callable[[str, int], None], service: FeatureService, url: str) -> None:
    on_listening(url, len(service.views))


def _store(store: str | None, root: str | Path | None) -> str:
    """Return the store that is named, else the embedded one of the lake; UsageError where both are,
    or the lake is a catalog's."""
    if store and root:
        raise UsageError("a store is served, or that of a lake's folder", expected="one of both")
    if store:
        return store
    folder = Place.resolve(Path(root) if root else None).folder
    if folder is None:
        raise UsageError(
            "a catalog's lake has no file to serve", where="store", expected="redis://HOST:PORT/0"
        )
    return str(folder / FILE_NAME)
