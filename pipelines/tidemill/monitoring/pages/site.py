"""The application: which page each path is. Only `/replay` and `/reconcile` do anything.

one pipeline      /, /batches, /views/VIEW ...
several           / for all at a glance, and each one's pages below /pipelines/NAME
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import BaseRoute, Mount, Route

from tidemill.config.settings import iso
from tidemill.errors import UsageError
from tidemill.monitoring.pages import content, pipeline_pages
from tidemill.monitoring.pages.content import Page
from tidemill.monitoring.pages.feature_view import feature_view
from tidemill.monitoring.pages.glance import glance
from tidemill.monitoring.pages.key_page import key_page
from tidemill.monitoring.pages.lake_reads import Shown
from tidemill.monitoring.pages.overview import overview
from tidemill.monitoring.pages.page_answers import PageAnswers
from tidemill.monitoring.pages.visitors import Visitors
from tidemill.monitoring.report import html


def application(shown: Sequence[Shown], visitors: Visitors) -> Starlette:
    """Return the whole application, of one pipeline or of several."""
    if len(shown) == 1:
        return _pages_of(shown[0], PageAnswers(visitors, shown[0].pipeline, shown[0].place))
    answers = PageAnswers(visitors, None, f"{len(shown)} pipelines", several=True)
    routes: list[BaseRoute] = [
        Route("/", answers.page(lambda _: glance(shown)), methods=["GET"]),
        Route("/login", answers.login, methods=["GET", "POST"]),
    ]
    for each in shown:
        its = PageAnswers(visitors, each.pipeline, each.place, several=True)
        routes.append(Mount(each.path, _pages_of(each, its)))
    return Starlette(routes=routes, exception_handlers={404: answers.unknown})


def warm(shown: Sequence[Shown]) -> None:
    """Make the first page once: it imports what reads and draws, for a second that somebody else
    would wait."""
    with suppress(Exception):  # whoever asks for a page is told; the others can be shown
        html.warm()
        content.template()
        overview(shown[0].lake, shown[0].views, iso(shown[0].clock.now()))


def _pages_of(shown: Shown, answers: PageAnswers) -> Starlette:
    """Return the application of one pipeline."""
    site, lake = _Site(shown), shown.lake
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
        "/views/{view}/key": lambda r: key_page(shown, site.view(r), dict(r.query_params)),
        "/commands/{number:int}": lambda r: shown.commands.page(r.path_params["number"]),
    }
    routes = [Route(path, answers.page(make), methods=["GET"]) for path, make in simple.items()]
    routes += [
        Route("/login", answers.login, methods=["GET", "POST"]),
        Route("/reconcile", answers.does(site.reconcile), methods=["POST"]),
        Route("/replay", answers.does(site.replay), methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers={404: answers.unknown})


class _Site:
    """What the paths of a pipeline name and do."""

    def __init__(self, shown: Shown):
        self._shown = shown

    def view(self, request: Request) -> str:
        """Return the view that the path names; UsageError for another than the pipeline's."""
        name = str(request.path_params["view"])
        if name not in self._shown.views:
            expected = ", ".join(self._shown.views)
            raise UsageError("no such view", where=name, expected=expected)
        return name

    def reconcile(self, _: dict[str, str]) -> int:
        """Compare gold with the recompute."""
        return self._shown.commands.start("reconcile", self._shown.named)

    def replay(self, form: dict[str, str]) -> int:
        """Send a refused record through again; UsageError for one that is not in quarantine."""
        record = form.get("record_id", "")
        self._shown.lake.quarantine.record(record)
        if "," in record:
            raise UsageError("a comma is in it", where=record, expected="the command, with a file")
        words = ["quarantine", "replay", self._shown.named, f"--ids={record}"]
        if said := form.get("set", "").strip():
            words.append(f"--set={said}")
        return self._shown.commands.start(*words)
