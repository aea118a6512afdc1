"""A lake in a browser: what the pages ask, answered by the lake, and the process that serves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidemill.api import reads
from tidemill.api.holding import Access
from tidemill.api.refused_records import Quarantine
from tidemill.config.publishing import Publishing
from tidemill.errors import StoreError, TidemillError
from tidemill.features import FeatureView
from tidemill.lake.statements import statement
from tidemill.monitoring import last_error
from tidemill.monitoring.report import html, measurements
from tidemill.online.extras import require_serve
from tidemill.online.open_store import open_store
from tidemill.pipeline import publication
from tidemill.query import charts, describe
from tidemill.query.feature_values import distribution, key_changes

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from tidemill.online.server.tokens import Tokens

Facts = dict[str, Any]


class PageReads:
    """What the pages read of a lake that was opened with a pipeline."""

    def __init__(self, access: Access):
        """Read this lake."""
        self._access = access
        self.quarantine = Quarantine(access)

    def frames(self) -> Iterator[Facts]:
        """Yield where every query stands."""
        return reads.frames(self._access)

    def describe(self, view: str) -> Facts:
        """Return features, tables and how fresh gold is."""
        return describe.describe(*reads.of_view(self._access, view), self._access.opening.clock)

    def answer(self, sql: str) -> Facts:
        """Return `{columns, rows}` of a statement that only reads."""
        return reads.answer(self._access, sql)

    def explain(
        self, view: str, key: Mapping[str, object], /, *, feature: str | None = None
    ) -> Facts:
        """Return why a key's features have their values."""
        return reads.explain(self._access, view, key, feature, None)

    def _view(self, name: str) -> FeatureView:
        return self._access.declaring(name).view(name)

    def numbers(self, days: int) -> Facts:
        """Return the report's numbers."""
        return measurements.report(self._access.reader(), self._access.opening.clock, days)

    def distribution(self, view: str) -> Facts:
        """Return how the values of each feature lie, now and a week before."""
        return distribution.distribution(self._access.reader(), self._view(view))

    def key_history(self, view: str, key: Sequence[str]) -> list[Facts]:
        """Return the values of a key at earlier versions of gold; none where they are gone."""
        declared = self._view(view)
        named = dict(zip(declared.keys, key, strict=True))
        try:
            return key_changes.key_changes(self._access.reader(), declared, named)
        except TidemillError:  # the files of a version are gone, or its feed cannot be read
            return []

    def last_error(self) -> Facts | None:
        """Return the error that the last run ended with; None where it ended well."""
        name = self._access.the_pipeline().pipeline
        return last_error.newest(self._access.opening.place, name)

    def checks(self) -> list[Facts]:
        """Return the checks of the newest run of the quality gate; none before its first."""
        lake = self._access.reader()
        if not lake.has(lake.tables.quality.name):
            return []
        view, source = lake.pipeline.views[0], lake.pipeline.pipeline
        text = statement("newest_checks", view, source=source)
        return [dict(row) for row in lake.ask(text, {}).rows]

    def published(self) -> list[Facts]:
        """Return how far the online store is behind gold, for each view that it has or should."""
        lake = self._access.reader()
        said = lake.pipeline.publish or Publishing()
        address = publication.address_of(lake, said)
        found = []
        for view in lake.pipeline.views:
            state, problem = None, None
            try:
                store = open_store(address)
                try:
                    state = store.view(view.name)
                finally:
                    store.close()
            except StoreError as error:
                problem = error.message
            gold = lake.gold_state(view).as_of
            behind = (gold - state.as_of).total_seconds() if state and gold else None
            found.append(
                {
                    "view": view.name,
                    "store": str(address),
                    "as_of": state and str(state.as_of),
                    "gold_version": state and state.gold_version,
                    "behind_seconds": behind,
                    "problem": problem or (None if state else "nothing is published"),
                }
            )
        return found


def serve_pages(
    access: Access,
    place: Sequence[str],
    *,
    host: str,
    port: int,
    token_env: str,
    on_listening: Callable[[str], None],
) -> None:
    """Serve the pages until Ctrl-C or SIGTERM; see `Lake.ui`."""
    require_serve()
    charts.require_altair()
    from tidemill.online.server.tokens import Tokens
    from tidemill.online.server.web_server import run

    made = site(access, place, Tokens.from_environment(token_env, host))
    threading.Thread(target=html.warm, daemon=True).start()
    run(made, host, port, on_listening)


def site(access: Access, place: Sequence[str], tokens: Tokens) -> Starlette:
    """Return the application that shows the lake to who has one of the tokens; `place` are the
    words that name the lake for commands."""
    from tidemill.monitoring.pages.site import Shown, application
    from tidemill.monitoring.pages.started_commands import Commands
    from tidemill.monitoring.pages.visitors import Visitors

    definition, opening = access.the_pipeline(), access.opening
    if opening.place.folder is not None:
        access = replace(access, engine="duckdb")  # no page starts a session
    shown = Shown(
        PageReads(access),
        access.named or definition.pipeline,
        [view.name for view in definition.views],
        str(opening.place),
        Commands(place),
        opening.clock,
    )
    return application(shown, Visitors(tokens))
