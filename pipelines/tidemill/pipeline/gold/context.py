"""What the steps of a refresh hand to each other: small frozen values, and nothing that acts.

RefreshContext   what every step uses: lake, view, the buckets' newest commits
RefreshRequest   what gold shall hold: (batch, as_of), and why a recompute is forced
RefreshPlan      from which state, to which target, by which strategy
Changes          the rows that differ from gold, and how many there are by action
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pyspark.sql import DataFrame

from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.commits.ledger import Commit, GoldState
from tidemill.pipeline.gold.strategy import Strategy
from tidemill.pipeline.silver.hour_buckets import Hours


@dataclass(frozen=True)
class RefreshContext:
    """What every step of one refresh uses; built once for each attempt."""

    lake: Lake
    view: FeatureView
    bucket_commits: Sequence[Commit]  # the newest first; empty for what the state emitted

    @property
    def gold(self) -> str:
        """The name of the gold table."""
        return self.lake.tables.of(self.view).gold.name

    @property
    def buckets(self) -> str:
        """The name of the bucket table."""
        return self.lake.tables.of(self.view).buckets.name


@dataclass(frozen=True)
class Emission:
    """The values of keys that changed, as the stateful engine emitted them; `whole` when its state
    is new and it emitted every key."""

    rows: DataFrame
    whole: bool


@dataclass(frozen=True)
class RefreshRequest:
    """What gold shall hold: the buckets with `batch <= batch`, in the windows that end at `as_of`.

    An as_of of None (no bucket yet) asks for nothing. `force` says why a recompute is wanted
    whatever the ledger says; `not_below` keeps an as_of from going back; `seconds` are those of
    earlier steps, for the ledger; `appended` are the bucket rows that the batch itself added, of
    which the context's commits may not tell.
    """

    as_of: datetime | None
    batch: int
    force: str | None = None
    not_below: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)
    appended: int = 0
    emission: Emission | None = None

    def arrived(self, state: GoldState, commits: Sequence[Commit]) -> int:
        """Return the bucket rows that came since gold's state, given the bucket table's commits."""
        recorded = sum(
            c.metric("numOutputRows")
            for c in ledger.appends(commits)
            if c.ledger
            and int(c.ledger["batch"]) > state.batch
            and not (self.appended and int(c.ledger["batch"]) == self.batch)
        )
        return recorded + self.appended

    def target(self, state: GoldState) -> tuple[datetime, int] | None:
        """Return the (as_of, batch) to bring gold to, from where it is; None without an as_of.
        batch is never lowered."""
        if self.as_of is None:
            return None
        as_of = max(self.as_of, state.as_of) if self.not_below and state.as_of else self.as_of
        return as_of, max(self.batch, state.batch)


@dataclass(frozen=True)
class RefreshPlan:
    """From which state of gold, to which target, by which strategy."""

    state: GoldState
    as_of: datetime
    batch: int
    strategy: Strategy
    hours: Hours | None = None  # the hour buckets to read, where they are of use
    bucket_version: int | None = None  # of the bucket table, or an earlier one, that is read
    replaces_columns: bool = False  # gold is written anew, with the columns that the view declares

    @property
    def goes_back(self) -> bool:
        """Whether gold is brought to an earlier as_of."""
        return self.state.as_of is not None and self.as_of < self.state.as_of


@dataclass(frozen=True)
class Changes:
    """The rows that differ from gold, cached: new values, `__action` for each key; of a gold that
    is written anew, every row. `counts` are the rows by action, `overflowed` the keys by feature
    whose value does not fit, `seconds` what it took to compute them."""

    rows: DataFrame
    counts: Mapping[str, int]
    overflowed: Mapping[str, int]
    seconds: float
