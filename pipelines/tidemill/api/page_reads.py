"""A lake in a browser: what the pages ask, answered by the lake, and the process that serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tidemill.api import reads
from tidemill.api.holding import Access
from tidemill.api.refused_records import Quarantine
from tidemill.config.publishing import Publishing
from tidemill.config.settings import iso
from tidemill.errors import TidemillError
from tidemill.lake.statements import statement
from tidemill.monitoring import last_error, table_health
from tidemill.monitoring.report import measurements
from tidemill.online.extras import require_serve
from tidemill.pipeline import publication
from tidemill.query import charts, describe
from tidemill.query.feature_values import distribution, key_changes

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from tidemill.monitoring.pages.lake_reads import Shown
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

    def explain(self, view: str, key: Mapping[str, str], most: int) -> Facts:
        """Return why a key's features have their values; of the events the newest `most`."""
        return reads.explain(self._access, view, key, None, None, most)

    def numbers(self, days: int) -> Facts:
        """Return the report's numbers."""
        return measurements.report(self._access.reader(), self._access.opening.clock, days)

    def distribution(self, view: str) -> Facts:
        """Return how the values of each feature lie, now and a week before."""
        return distribution.distribution(*reads.of_view(self._access, view))

    def newest_keys(self, view: str) -> list[Facts]:
        """Return the keys that changed last, each with `updated_at`."""
        lake, declared = reads.of_view(self._access, view)
        return [dict(row) for row in lake.ask(statement("newest_keys", declared), {}).rows]

    def files(self) -> list[Facts]:
        """Return the files of each table, as the report counts them."""
        return table_health.tables_of(self._access.reader())

    def key_history(self, view: str, key: Mapping[str, str]) -> list[Facts]:
        """Return the values of a key at earlier versions of gold; none where they are gone."""
        try:
            return key_changes.key_changes(*reads.of_view(self._access, view), key)
        except TidemillError:  # the files of a version are gone, or its feed cannot be read
            return []

    def last_error(self) -> Facts | None:
        """Return the error that the last run ended with; None where it ended well."""
        name = self._access.the_pipeline().pipeline
        return last_error.newest(self._access.opening.place, name)

    def alerts(self) -> list[Facts]:
        """Return the episodes of alerts that go on."""
        return reads.alerts(self._access, all_of_them=False)

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
        address = publication.address_of(lake, said).url
        return [
            {
                "view": each.view,
                "store": address,
                "as_of": each.state and iso(each.state.as_of),
                "gold_version": each.state and each.state.gold_version,
                "behind_seconds": each.behind if each.state else None,
                "problem": each.problem or (None if each.state else "nothing is published"),
            }
            for each in publication.store_states(lake, said)
        ]


def serve_pages(
    lakes: Sequence[Access],
    *,
    host: str,
    port: int,
    token_env: str,
    on_listening: Callable[[str], None],
) -> None:
    """Serve the pages until Ctrl-C or SIGTERM; see `Lake.ui`."""
    require_serve()
    charts.require_altair()
    from tidemill.monitoring.pages.site import warm
    from tidemill.online.server.tokens import Tokens
    from tidemill.online.server.web_server import run

    tokens = Tokens.from_environment(token_env, host)
    shown = _shown_of(lakes)
    warm(shown)
    run(_application(shown, tokens), host, port, on_listening)


def site(lakes: Sequence[Access], tokens: Tokens) -> Starlette:
    """Return the application that shows each lake's pipeline to who has one of the tokens."""
    return _application(_shown_of(lakes), tokens)


def _application(shown: Sequence[Shown], tokens: Tokens) -> Starlette:
    from tidemill.monitoring.pages.site import application
    from tidemill.monitoring.pages.visitors import Visitors

    return application(shown, Visitors(tokens))


def _shown_of(lakes: Sequence[Access]) -> list[Shown]:
    shown: list[Shown] = []
    for access in lakes:
        names = [each.pipeline for each in shown]
        shown.append(_shown(access, names.count(access.the_pipeline().pipeline)))
    return shown


def _shown(access: Access, before: int) -> Shown:
    """Return what is shown of a lake, beside so many of a pipeline of the same name."""
    from tidemill.monitoring.pages.lake_reads import Shown
    from tidemill.monitoring.pages.started_commands import Commands

    definition, opening = access.the_pipeline(), access.opening
    place, words = opening.place, ["--root", str(opening.place.folder)]
    if place.folder is not None:
        access = replace(access, engine="duckdb")  # no page starts a session
    else:
        words = ["--catalog", str(place.catalog), "--schema", str(place.schema)]
    name = definition.pipeline
    return Shown(
        PageReads(access),
        name,
        definition.command_name,
        [view.name for view in definition.views],
        str(place),
        Commands(words),
        opening.clock,
        f"/pipelines/{quote(name, safe='')}" + (f"-{before + 1}" if before else ""),
    )
