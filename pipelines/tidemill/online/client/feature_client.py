"""The client for programs that wait for an answer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote

from tidemill.online.answers.feature_service import FeatureService
from tidemill.online.client import http_exchange
from tidemill.online.client.connection_pool import ConnectionPool
from tidemill.online.client.http_exchange import PATH
from tidemill.online.client.question import Contains, Features, Keys, of_view, of_views

TOKEN = "TIDEMILL_TOKEN"
Answer = dict[str, Any]


class FeatureClient:
    """Features of keys, as they were published last: from `tidemill serve` at an http(s) URL, or,
    without a server, from the store at any other address, such as `lake/_tidemill_online.sqlite` or
    `redis://host:6379/0`.

    Connections are kept; threads may share a client. `token` is by default what the environment
    variable TIDEMILL_TOKEN holds; `seconds` is how long an answer may take. A server has its own
    limits; a store read here those of docs/serving.md, or `limits`, such as `{"refuse_after":
    "30d"}`. Answers are those of the API as dictionaries, with Python's values: decimals, times and
    bytes as they are.

    RequestError for what the API refuses (`status` has its HTTP status), StoreError where nothing
    can be answered now.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        seconds: float = 2.0,
        connections: int = 16,
        limits: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the address; the first question connects."""
        token = token if token is not None else os.environ.get(TOKEN)
        self._http: ConnectionPool | None = None
        if http_exchange.is_url(address):
            self._http = http_exchange.pool(address, token, seconds, connections)
        else:
            self._service = FeatureService.of_store(address, limits)

    def features(
        self,
        view: str,
        keys: Keys,
        features: Features = None,
        contains: Contains = None,
        mode: str | None = None,
    ) -> Answer:
        """Return `{view, gold_version, as_of, age_seconds, stale, rows}` of 1 to 1,000 keys, each a
        mapping of its columns or the values in the view's order; of some features or all.
        `contains` asks filters: `{"user_id_cuckoo_1d": "u1"}`. Slices answer where the view has
        some; `mode="gold"` asks for gold as it was published."""
        return self._answer(of_view(view, keys, features, contains, mode))

    def features_of_views(self, views: Mapping[str, Mapping[str, Any]], keys: Keys) -> Answer:
        """Return `{views: {name: answer}}` of several views of one entity; a key has the columns of
        all of them. Each view is named with its options: `{"engagement": {"features": [...]}}`."""
        return self._answer(of_views(views, keys))

    def describe(self, view: str) -> Answer:
        """Return a view's keys, features, types and empty values, and how fresh it is."""
        if self._http:
            answer: Answer = http_exchange.ask(self._http, f"{PATH}/{quote(view)}")
            return answer
        self._service.look_if_due()
        return self._service.described(view)

    def close(self) -> None:
        """Give back the connections."""
        if self._http:
            self._http.close()
        else:
            self._service.store.close()

    def _answer(self, document: Mapping[str, Any]) -> Answer:
        if self._http:
            answer: Answer = http_exchange.ask(self._http, PATH, document)
            return answer
        return self._service.answer_document(document)

    def __enter__(self) -> FeatureClient:
        """Return itself, to be closed at the end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()
