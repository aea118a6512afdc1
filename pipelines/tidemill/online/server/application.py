"""The application: what each path answers. `request_gate` stands before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from tidemill.errors import TidemillError
from tidemill.online.answers import wire_format
from tidemill.online.answers.feature_service import FeatureService
from tidemill.online.server import documents, refusal_bodies
from tidemill.online.server.request_gate import Application, Message, Receive, RequestGate, Send
from tidemill.online.server.request_metrics import RequestMetrics
from tidemill.online.server.response_log import ResponseLog
from tidemill.online.server.serving import Serving, formed, response
from tidemill.online.server.tokens import Tokens

FEATURES = "/v1/features"
Documented = dict[int | str, dict[str, Any]]


def application(
    service: FeatureService,
    tokens: Tokens,
    metrics: RequestMetrics | None = None,
    responses: ResponseLog | None = None,
) -> Application:
    """Return the whole application: the paths behind the gate."""
    metrics = metrics or RequestMetrics()
    serving = Serving(service, metrics, responses)
    return RequestGate(_directly(serving, _paths(serving)), service.limits, tokens, metrics)


def _directly(serving: Serving, app: FastAPI) -> Application:
    """Return the application with its hot path before the router, which takes a third of the time
    of a single key, and without Starlette's objects of a request and its answer; the router has the
    same path, for OpenAPI."""

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (scope["method"], scope["path"]) != ("POST", FEATURES):
            await app(scope, receive, send)
            return
        try:
            answered = await serving.features(await _body(receive))
        except TidemillError as error:
            refused = await _refused(Request(scope, receive), error)
            await refused(scope, receive, send)
            return
        form, body = formed(_accepted(scope), answered)
        headers = [(b"content-length", b"%d" % len(body)), (b"content-type", form.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer


async def _body(receive: Receive) -> bytes:
    """Return the body of a request; ClientDisconnect where its sender went away."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _accepted(scope: Message) -> str:
    """Return what a request accepts, as its header has it."""
    found: bytes = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return found.decode("latin-1")


def _paths(serving: Serving) -> FastAPI:
    @asynccontextmanager
    async def following(_: FastAPI) -> AsyncIterator[None]:
        await serving.look()
        task = asyncio.create_task(serving.follow())
        yield
        task.cancel()
        await serving.service.store.close_async()

    app = FastAPI(
        title="Tidemill",
        description="Features of a key, as they were published last.",
        version="1",
        lifespan=following,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        exception_handlers={
            TidemillError: _refused,
            HTTPException: _no_such_path,
            Exception: _failed,
        },
    )
    _add_features(app, serving)
    _add_states(app, serving)
    return app


def _add_features(app: FastAPI, serving: Serving) -> None:
    refused: Documented = {
        status: {"model": documents.Refusal, "description": text}
        for status, text in documents.REFUSALS.items()
    }
    for each in refused.values():
        each["content"] = {"application/json": {"example": documents.EXAMPLE_OF_REFUSAL}}
    body = {"application/json": {"schema": documents.REQUEST, "examples": documents.REQUESTS}}
    answered: Documented = {
        200: {
            "model": documents.ViewAnswer | documents.ManyAnswer,
            "content": {"application/json": {"example": documents.ANSWER}},
        }
    }

    @app.post(
        FEATURES,
        summary="The features of 1 to 1,000 keys",
        responses={**answered, **refused},
        openapi_extra={"requestBody": {"required": True, "content": body}},
    )
    async def features(request: Request) -> Response:
        return response(request, await serving.features(await request.body()))

    of_views: Documented = {name: refused[name] for name in (401, 429, 503)}

    @app.get(
        FEATURES,
        summary="The views",
        responses={200: {"model": documents.ViewList}, **of_views},
    )
    async def views(request: Request) -> Response:
        whole = [n for n, view in sorted(serving.service.views.items()) if view.state.is_whole]
        return response(request, {"views": [serving.described(name) for name in whole]})

    @app.get(
        "/v1/features/{view}",
        summary="What there is to ask of a view",
        responses={200: {"model": documents.ViewDescription}, 404: refused[404], **of_views},
    )
    async def view(view: str, request: Request) -> Response:
        return response(request, serving.described(view))


def _add_states(app: FastAPI, serving: Serving) -> None:
    @app.get("/health", summary="Whether the process lives")
    async def health() -> documents.Health:
        return documents.Health(status="alive")

    @app.get(
        "/ready",
        summary="Whether requests can be answered",
        responses={503: {"model": documents.Refusal, "description": "They cannot"}},
    )
    async def ready() -> documents.Health:
        serving.check_ready()
        return documents.Health(status="ready")

    @app.get("/metrics", summary="What Prometheus reads", response_class=Response)
    async def metrics() -> Response:
        return Response(serving.metrics.text(), media_type="text/plain; version=0.0.4")


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, TidemillError)
    body = refusal_bodies.body_of_error(error)
    status = refusal_bodies.status_of(error)
    return Response(body, status, refusal_bodies.HEADERS.get(status), wire_format.JSON)


async def _no_such_path(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    body = refusal_bodies.body_of(
        "request", error.detail, "path", "/openapi.json lists what there is"
    )
    return Response(body, error.status_code, error.headers, wire_format.JSON)


async def _failed(_: Request, __: Exception) -> Response:
    """Return what the sender of a request is told of a defect; the gate logs where it is."""
    return Response(refusal_bodies.DEFECT, 500, media_type=wire_format.JSON)
