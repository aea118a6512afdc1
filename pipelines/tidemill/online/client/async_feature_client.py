"""The client for programs with an event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote

from tidemill.online.answers import feature_request
from tidemill.online.answers.feature_service import FeatureService
from tidemill.online.answers.shared_reads import SharedReads
from tidemill.online.client import http_exchange
from tidemill.online.client.feature_client import TOKEN, Answer
from tidemill.online.client.http_exchange import PATH
from tidemill.online.client.question import Contains, Features, Keys, of_view, of_views


class AsyncFeatureClient:
    """A `FeatureClient` whose questions are awaited; one event loop's."""

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
        self._http: Any = None
        if http_exchange.is_url(address):
            self._http = http_exchange.async_client(address, token, seconds, connections)
        else:
            self._service = FeatureService.of_store(address, limits)
            self._shared = SharedReads(self._service.store)

    async def features(
        self,
        view: str,
        keys: Keys,
        features: Features = None,
        contains: Contains = None,
        mode: str | None = None,
    ) -> Answer:
        """Return what `FeatureClient.features` does."""
        return await self._answer(of_view(view, keys, features, contains, mode))

    async def features_of_views(self, views: Mapping[str, Mapping[str, Any]], keys: Keys) -> Answer:
        """Return what `FeatureClient.features_of_views` does."""
        return await self._answer(of_views(views, keys))

    async def describe(self, view: str) -> Answer:
        """Return what `FeatureClient.describe` does."""
        if self._http:
            answer: Answer = await http_exchange.ask_async(self._http, f"{PATH}/{quote(view)}")
            return answer
        await asyncio.to_thread(self._service.look_if_due)
        return self._service.described(view)

    async def close(self) -> None:
        """Give back the connections."""
        if self._http:
            await self._http.aclose()
        else:
            await self._service.store.close_async()
            self._service.store.close()

    async def _answer(self, document: Mapping[str, Any]) -> Answer:
        if self._http:
            answer: Answer = await http_exchange.ask_async(self._http, PATH, document)
            return answer
        await asyncio.to_thread(self._service.look_if_due)
        request = feature_request.read(document, self._service.limits)
        return await self._service.answer_async(request, self._shared)

    async def __aenter__(self) -> AsyncFeatureClient:
        """Return itself, to be closed at the end."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()
