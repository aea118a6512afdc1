"""How a page is answered: who asks, errors as pages, headers; the same on every path.

request ──► may be seen? ──no──► /login
                └─yes──► a function of the path ──► Page ──page.html──► answer
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tidemill.errors import TidemillError, UsageError
from tidemill.monitoring.pages import content
from tidemill.monitoring.pages.content import Button, Page
from tidemill.monitoring.pages.visitors import COOKIE, Visitors
from tidemill.monitoring.report import html
from tidemill.query.content_policy import content_security_policy

_MOST_BYTES = 100_000  # of a form


@dataclass(frozen=True)
class PageAnswers:
    """The answers to one group of paths; `pipeline` and `lake` stand on each page. `several` says
    that the group is one of some, below a page of all; None is the pipeline of that page itself."""

    visitors: Visitors
    pipeline: str | None
    lake: str
    several: bool = False

    def page(self, make: Callable[[Request], Page]) -> Callable[[Request], Any]:
        """Return what answers a path with a page."""

        async def answer(request: Request) -> Response:
            if refused := self.refused(request):
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
            if refused := self.refused(request):
                return refused
            form = await _form(request)
            if not self.visitors.guards(request.cookies.get(COOKIE, ""), form.get("guard", "")):
                what = "The form was not on a page of this process: open its page again."
                return self._html(request, Page("Nothing was done", what), 403)
            try:
                number = await run_in_threadpool(act, form)
            except TidemillError as error:
                return self._error(request, error)
            return RedirectResponse(f"{_root(request)}/commands/{number}", 303)

        return answer

    async def login(self, request: Request) -> Response:
        """Take a token, and let its bearer in."""
        if foreign := self._foreign(request):
            return foreign
        if request.method == "POST":
            cookie = self.visitors.welcome((await _form(request)).get("token", ""))
            if cookie is not None:
                response = RedirectResponse(f"{_root(request)}/", 303)
                response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict")
                return response
        what = "The token of these pages, as the variable of `tidemill ui` holds it."
        button = Button("Log in", "/login", inputs={"token": "token"})
        status = 401 if request.method == "POST" else 200
        return self._html(request, Page("Log in", what, buttons=[button]), status)

    async def unknown(self, request: Request, _: Exception) -> Response:
        """Return the page of a path that is none."""
        if refused := self.refused(request):
            return refused
        return self._html(request, Page("No such page", "The links above lead to all."), 404)

    def refused(self, request: Request) -> Response | None:
        """Return the answer to whom nothing is shown."""
        if foreign := self._foreign(request):
            return foreign
        authorization = request.headers.get("authorization", "").encode()
        if not self.visitors.admits(request.cookies.get(COOKIE, ""), authorization):
            return RedirectResponse(f"{_root(request)}/login", 303)
        return None

    def _foreign(self, request: Request) -> Response | None:
        """Return the answer to who asks by a name that is not this machine's."""
        if self.visitors.tokens.takes_host(request.headers.get("host", "").encode()):
            return None
        return Response("not asked by this machine's name", 403, _headers())

    def _error(self, request: Request, error: TidemillError) -> Response:
        """Return an error as a page: what is wrong, where, what to do."""
        where = f"{error.where}: " if error.where else ""
        cure = f" Expected: {error.expected}." if error.expected else ""
        status = 404 if isinstance(error, UsageError) else 500
        return self._html(
            request, Page("This did not work", f"{where}{error.message}.{cure}"), status
        )

    def _html(self, request: Request, made: Page, status: int = 200) -> Response:
        text = content.rendered(
            made,
            pipeline=self.pipeline,
            lake=self.lake,
            guard=self.visitors.guard(request.cookies.get(COOKIE, "")),
            root=_root(request),
            several=self.several,
        )
        return HTMLResponse(text, status, _headers())


def _root(request: Request) -> str:
    """Return the path below which the group of paths stands; nothing where it is alone."""
    return str(request.scope.get("root_path", ""))


def _headers() -> dict[str, str]:
    policy = content_security_policy(html.style(), forms=True)
    return {
        "content-security-policy": f"{policy}; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
        "cache-control": "no-store",
    }


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form, the last value of each; too much of it is not read."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            return {}
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in fields.items()}
