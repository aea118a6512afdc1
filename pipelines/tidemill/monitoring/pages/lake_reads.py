"""What the pages ask of a lake, which only reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tidemill.config.settings import Clock
from tidemill.monitoring.pages.started_commands import Commands

Facts = dict[str, Any]


class RefusedRecords(Protocol):
    """The quarantine."""

    def summary(self) -> Facts:
        """Return reasons and the newest open records."""

    def record(self, record_id: str) -> Facts:
        """Return one refused record whole; UsageError for an unknown one."""


class LakeReads(Protocol):
    """A lake that was opened with a pipeline; `tidemill.api.page_reads.PageReads` is one."""

    @property
    def quarantine(self) -> RefusedRecords:
        """The refused records."""

    def frames(self) -> Iterator[Facts]:
        """Yield where every query stands."""

    def numbers(self, days: int) -> Facts:
        """Return the report's numbers."""

    def describe(self, view: str) -> Facts:
        """Return features, tables and how fresh gold is."""

    def distribution(self, view: str) -> Facts:
        """Return how the values of each feature lie, now and a week before."""

    def key_history(self, view: str, key: Mapping[str, str]) -> list[Facts]:
        """Return the values of a key at earlier versions of gold."""

    def last_error(self) -> Facts | None:
        """Return the error that the last run ended with; None where it ended well."""

    def alerts(self) -> list[Facts]:
        """Return the episodes of alerts that go on."""

    def checks(self) -> list[Facts]:
        """Return what the newest run of the quality gate found."""

    def published(self) -> list[Facts]:
        """Return how far the online store is behind gold, for each view."""

    def explain(self, view: str, key: Mapping[str, str], most: int) -> Facts:
        """Return why a key's features have their values; of the events the newest `most`, and of
        how many that is."""

    def newest_keys(self, view: str) -> list[Facts]:
        """Return the keys that changed last, each with `updated_at`."""

    def files(self) -> list[Facts]:
        """Return the files of each table, as the report counts them."""


class Shown(NamedTuple):
    """A pipeline that is shown: its lake, its name and as commands take it, its views, the lake's
    place, the commands on it. `path` is where its pages are among those of several pipelines."""

    lake: LakeReads
    pipeline: str
    named: str
    views: Sequence[str]
    place: str
    commands: Commands
    clock: Clock
    path: str
