"""The application: which page each path is. Only `/replay` and `/reconcile` do anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tidemill.config.settings import Clock, iso
from tidemill.errors import TidemillError, UsageError
from tidemill.monitoring.pages import content, pipeline_pages
from tidemill.monitoring.pages.content import Button, Page
from tidemill.monitoring.pages.feature_view import feature_view
from tidemill.monitoring.pages.key_page import key_page
from tidemill.monitoring.pages.lake_reads import LakeReads
from tidemill.monitoring.pages.overview import overview
from tidemill.monitoring.pages.started_commands import Commands
from tidemill.monitoring.pages.visitors import COOKIE, Visitors
from tidemill.monitoring.report import html
from tidemill.query.content_policy import content_security_policy

_MOST_BYTES = 100_000  # of a form


class Shown(NamedTuple):
    """What is shown: a lake with its pipeline's name, views and place, and the commands on it."""

    lake: LakeReads
    pipeline: str
    views: Sequence[str]
    place: str
    commands: Commands
    clock: Clock


def application(shown: Shown, visitors: Visitors) -> Starlette:
    """Return the whole application."""
    site = _Site(shown, visitors)
    lake = shown.lake
    simple: dict[str, Callable[[Request], Page]] = {
        "/": lambda _: overview(lake, shown.views, iso(shown.clock.now())),
        "/batches": lambda _: pipeline_pages.batches(lake),
        "/quality": lambda _: pipeline_pages.quality(lake),
        "/quarantine": lambda _: pipeline_pages.quarantine(lake),
        "/quarantine/record": lambda r: pipeline_pages.refused_record(
            lake, r.query_params.get("id", "")
        ),
        "/files": lambda _: pipeline_pages.files(lake),
        "/online": lambda _: pipeline_pages.online(lake),
        "/views/{view}": lambda r: feature_view(lake, site.view(r)),
        "/views/{view}/key": lambda r: key_page(lake, site.view(r), dict(r.query_params)),
        "/commands/{number:int}": lambda r: shown.commands.page(r.path_params["number"]),
    }
    routes = [Route(path, site.page(make), methods=["GET"]) for path, make in simple.items()]
    routes += [
        Route("/login", site.login, methods=["GET", "POST"]),
        Route("/reconcile", site.does(site.reconcile), methods=["POST"]),
        Route("/replay", site.does(site.replay), methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers={404: site.unknown})


class _Site:
    """What all paths have in common: who asks, errors as pages, headers."""

    def __init__(self, shown: Shown, visitors: Visitors):
        self._shown, self._visitors = shown, visitors
        policy = content_security_policy(html.style(), forms=True)
        self._headers = {
            "content-security-policy": f"{policy}; frame-ancestors 'none'",
            "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin",
            "cache-control": "no-store",
        }

    def view(self, request: Request) -> str:
        """Return the view that the path names; UsageError for another than the pipeline's."""
        name = str(request.path_params["view"])
        if name not in self._shown.views:
            expected = ", ".join(self._shown.views)
            raise UsageError("no such view", where=name, expected=expected)
        return name

    def page(self, make: Callable[[Request], Page]) -> Callable[[Request], Any]:
        """Return what answers a path with a page."""

        async def answer(request: Request) -> Response:
            if refused := self._refused(request):
                return refused
            try:
                made = await run_in_threadpool(make, request)
            except TidemillError as error:
                return self._error(request, error)
            return self._html(request, made)

        return answer

    def does(self, act: Callable[[dict[str, str]], int]) -> Callable[[Request], Any]:
        """Return what answers a form: the page of the command that it started."""

        async def answer(request: Request) -> Response:
            if refused := self._refused(request):
                return refused
            form = await _form(request)
            if not self._visitors.guards(request.cookies.get(COOKIE, ""), form.get("guard", "")):
                what = "The form was not on a page of this process: open its page again."
                return self._html(request, Page("Nothing was done", what), 403)
            try:
                number = await run_in_threadpool(act, form)
            except TidemillError as error:
                return self._error(request, error)
            return RedirectResponse(f"/commands/{number}", 303)

        return answer

    def reconcile(self, _: dict[str, str]) -> int:
        """Compare gold with the recompute."""
        return self._shown.commands.start("reconcile", self._shown.pipeline)

    def replay(self, form: dict[str, str]) -> int:
        """Send a refused record through again; UsageError for one that is not in quarantine."""
        record = form.get("record_id", "")
        self._shown.lake.quarantine.record(record)
        if "," in record:
            raise UsageError("a comma is in it", where=record, expected="the command, with a file")
        words = ["quarantine", "replay", self._shown.pipeline, f"--ids={record}"]
        if said := form.get("set", "").strip():
            words.append(f"--set={said}")
        return self._shown.commands.start(*words)

    async def login(self, request: Request) -> Response:
        """Take a token, and let its bearer in."""
        if foreign := self._foreign(request):
            return foreign
        if request.method == "POST":
            cookie = self._visitors.welcome((await _form(request)).get("token", ""))
            if cookie is not None:
                response = RedirectResponse("/", 303)
                response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict")
                return response
        what = "The token of these pages, as the variable of `tidemill ui` holds it."
        button = Button("Log in", "/login", inputs={"token": "token"})
        status = 401 if request.method == "POST" else 200
        return self._html(request, Page("Log in", what, buttons=[button]), status)

    async def unknown(self, request: Request, _: Exception) -> Response:
        """Return the page of a path that is none."""
        if refused := self._refused(request):
            return refused
        return self._html(request, Page("No such page", "The links above lead to all."), 404)

    def _refused(self, request: Request) -> Response | None:
        """Return the answer to whom nothing is shown."""
        if foreign := self._foreign(request):
            return foreign
        authorization = request.headers.get("authorization", "").encode()
        if not self._visitors.admits(request.cookies.get(COOKIE, ""), authorization):
            return RedirectResponse("/login", 303)
        return None

    def _foreign(self, request: Request) -> Response | None:
        """Return the answer to who asks by a name that is not this machine's."""
        if self._visitors.tokens.takes_host(request.headers.get("host", "").encode()):
            return None
        return Response("not asked by this machine's name", 403, self._headers)

    def _error(self, request: Request, error: TidemillError) -> Response:
        """Return an error as a page: what is wrong, where, what to do."""
        where = f"{error.where}: " if error.where else ""
        cure = f" Expected: {error.expected}." if error.expected else ""
        status = 404 if isinstance(error, UsageError) else 500
        return self._html(
            request, Page("This did not work", f"{where}{error.message}.{cure}"), status
        )

    def _html(self, request: Request, made: Page, status: int = 200) -> Response:
        guard = self._visitors.guard(request.cookies.get(COOKIE, ""))
        named = {"pipeline": self._shown.pipeline, "lake": self._shown.place}
        return HTMLResponse(content.rendered(made, guard=guard, **named), status, self._headers)


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form, the last value of each; too much of it is not read."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            return {}
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in fields.items()}
