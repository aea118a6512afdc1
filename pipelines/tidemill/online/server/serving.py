"""What the paths answer from: the service, how fresh it knows its views, what is counted."""

from __future__ import annotations

import asyncio
import functools
import logging
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from tidemill.errors import StoreError, TidemillError
from tidemill.online.answers import feature_request, view_answer, wire_format
from tidemill.online.answers.feature_service import EVERY, FeatureService
from tidemill.online.answers.shared_reads import SharedReads
from tidemill.online.server.request_metrics import RequestMetrics
from tidemill.online.server.response_log import ResponseLog

log = logging.getLogger(__name__)


class Serving:
    """What the paths answer from."""

    def __init__(
        self,
        service: FeatureService,
        metrics: RequestMetrics,
        responses: ResponseLog | None,
    ):
        """Hold the parts; the store is looked at when the application starts."""
        self.service, self.metrics, self.responses = service, metrics, responses
        self.shared = SharedReads(service.store, metrics.read)
        self.failure: TidemillError | None = None

    async def follow(self) -> None:
        """Look at what is published, again and again."""
        while True:
            await asyncio.sleep(EVERY)
            await self.look()

    async def look(self) -> None:
        """Look once; what goes wrong makes the server unready until it goes well."""
        try:
            await asyncio.to_thread(self.service.look)
        except Exception as error:
            failure = error if isinstance(error, TidemillError) else _unreadable(error)
            if self.failure is None:
                log.warning("not ready: %s", failure)
            self.failure = failure
            return
        self.failure = None
        for name in self.service.views:
            self.metrics.follow_age(name, functools.partial(self._age, name))

    def _age(self, name: str) -> float:
        view = self.service.views.get(name)
        return view.age(self.service.now()) if view else float("nan")

    async def features(self, body: bytes) -> view_answer.Answer:
        """Return the answer to the body of `POST /v1/features`."""
        asked = feature_request.read(_document(body), self.service.limits)
        answer = await self.service.answer_async(asked, self.shared)
        for one in answer["views"].values() if asked.of_many else (answer,):
            found = sum(entry["found"] for entry in one["rows"])
            self.metrics.keys(one["view"], found, len(one["rows"]) - found)
            if self.responses:
                self.responses.add(one, self.service.now())
        return answer

    def described(self, name: str) -> view_answer.Answer:
        """Return what there is to ask of a view."""
        return self.service.described(name)

    def check_ready(self) -> None:
        """Raise where no request can be answered."""
        if self.failure:
            raise self.failure
        whole = [view for view in self.service.views.values() if view.state.is_whole]
        if not whole:
            raise StoreError("nothing is published yet", expected="`tidemill publish`, or a run")
        self.service.check_age(whole)


def _unreadable(error: Exception) -> StoreError:
    return StoreError(f"what it says of its views cannot be read: {type(error).__name__}")


def _document(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        expected = 'such as {"view": "engagement", "keys": [...]}'
        raise feature_request.unprocessable("is no JSON", "body", expected) from None


def response(request: Request, answer: Any) -> Response:
    """Return an answer in the form that the request accepts."""
    form, body = formed(request.headers.get("accept", ""), answer)
    return Response(body, media_type=form)


def formed(accepted: str, answer: Any) -> tuple[str, bytes]:
    """Return an answer's media type and bytes, of the form that is accepted."""
    if accepted == wire_format.MSGPACK:
        return wire_format.MSGPACK, wire_format.as_msgpack(answer)
    return wire_format.JSON, wire_format.as_json(answer)
