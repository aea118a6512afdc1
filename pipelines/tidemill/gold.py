"""The gold layer: `refresh` brings a view's features to a point in time and merges only what
changed.

    recompute:    buckets ──features at as_of──┐
                  gold ────────────────────────┴─ full outer diff ─┐
    incremental:  buckets that entered or left ──their sums──┐     ├─► changed keys ──MERGE──► gold
                  gold of those keys ────────────────────────┴─────┤   {refresh, batch, as_of,
    stateful:     what the state emitted ──diff with gold──────────┘    mode ...} + txn

Gold says in the MERGE's own commit what it holds, so that gold = F(buckets where batch <= b, as_of)
for every version with a ledger, whatever died when.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from tidemill import hours, ledger, merging, tables, ways
from tidemill.binding import ask
from tidemill.errors import LedgerError
from tidemill.failpoints import reach
from tidemill.features import FeatureView
from tidemill.hours import Hours
from tidemill.lake import Lake
from tidemill.ledger import Commit, Standing
from tidemill.making import difference
from tidemill.session import interpreted
from tidemill.settings import iso
from tidemill.silver import cached
from tidemill.statements import statement
from tidemill.ways import Way

log = logging.getLogger(__name__)

TRIES = 3


@dataclass(frozen=True)
class Refreshed:
    """Gold after a refresh; `committed` is False when it already held this batch and as_of."""

    view: str
    as_of: datetime | None
    mode: str
    batch: int
    keys_changed: int
    committed: bool
    seconds: float


@dataclass(frozen=True)
class _Aim:
    """What one try of a refresh is to bring gold to, from where, and which way."""

    as_of: datetime
    batch: int
    standing: Standing
    way: Way
    buckets: int | None  # the bucket table's version, or an earlier one, that is read
    hours: Hours | None  # the hour buckets that are read, where there are
    spent: Mapping[str, float]


Aiming = Callable[[Standing], _Aim | None]
Changed = Callable[[Lake, FeatureView, _Aim], AbstractContextManager[DataFrame]]


def refresh(
    lake: Lake,
    view: FeatureView,
    *,
    as_of: datetime | None,
    batch: int,
    buckets: Sequence[Commit] = (),
    force: str | None = None,
    not_below: bool = False,
    spent: Mapping[str, float] | None = None,
) -> Refreshed:
    """Bring gold to the buckets with `batch <= batch` at `as_of`, in one commit, the way that the
    pipeline wishes and that the ledgers allow (see `ways`).

    A commit is made when batch or as_of moved, or when the rows cannot be trusted (no readable
    ledger, RESTORE, another's change, another definition, `force`), and then always, even with no
    changed key. batch is never lowered; as_of only with `not_below` False. When another refresh
    wins the race, the ledger is read again and the rest, if any, is done; at most three times, then
    LedgerError. `buckets` are the bucket table's newest commits, read where not given; `spent` are
    seconds of earlier steps, told in the ledger. An as_of of None (no bucket yet) does nothing.
    """
    found = buckets or lake.commits(tables.buckets(view).name)

    def aimed(there: Standing) -> _Aim | None:
        goal = _goal(there, as_of, batch, not_below)
        distrust = force or there.distrust
        if goal is None or (not distrust and goal == (there.as_of, there.batch)):
            return None
        wished = lake.pipeline.refresh
        way = ways.choose(lake, view, wished, there, goal[0], distrust, found)
        _say(tables.features(view).name, way)
        by_hours = None if force else _hours_for(lake, view, way, goal[1], found)
        return _Aim(*goal, there, way, found[0].version, by_hours, spent or {})

    return _bring(lake, view, aimed, _changed)


def merge_emitted(
    lake: Lake, view: FeatureView, emitted: DataFrame, *, as_of: datetime, batch: int, whole: bool
) -> Refreshed:
    """Merge what the state emitted, the values of the keys that changed, as the refresh to (batch,
    as_of).

    The state knows what it emitted last, not what gold holds. So gold must be as the last merge
    left it, unless the state is new (`whole`) and emits every key: then gold is compared with all
    of them. Otherwise LedgerError. The same rows again, after a crash, are found merged.
    """

    def aimed(there: Standing) -> _Aim | None:
        goal = _goal(there, as_of, batch, not_below=not whole)
        assert goal is not None
        kept = there.kept_by_state
        reached = kept and goal == (there.as_of, there.batch)
        if reached and _emitted_rows(lake, view, there, emitted, whole).isEmpty():
            return None
        if not kept and not whole and not _never_refreshed(lake, view, there):
            raise _not_kept(view, there)
        return _Aim(*goal, there, ways.STATEFUL, None, None, {})

    return _bring(lake, view, aimed, partial(_emitted, emitted=emitted, whole=whole))


def _never_refreshed(lake: Lake, view: FeatureView, there: Standing) -> bool:
    """Tell whether gold is as it was made: a query that began before there was any bucket has had
    a first batch of nothing."""
    return there.ledger is None and lake.spark.table(tables.features(view).name).isEmpty()


def _not_kept(view: FeatureView, there: Standing) -> LedgerError:
    mode = (there.ledger or {}).get("mode")
    return LedgerError(
        f"is not as the state left it: {there.distrust or f'refreshed by {mode}'}",
        where=tables.features(view).name,
        expected="run again: the state is then made anew from the buckets",
    )


def _bring(lake: Lake, view: FeatureView, aimed: Aiming, changed: Changed) -> Refreshed:
    """Read where gold stands, merge what `changed` yields for the aim, if there is one; again when
    another refresh wins, at most three times."""
    started = time.monotonic()
    name = tables.features(view).name
    for attempt in range(TRIES):
        there = lake.standing(view)
        aim = aimed(there)
        if aim is None:
            return _unchanged(view, there, started)
        with interpreted(lake.spark) if aim.way.small else nullcontext():
            count = _merge_changes(lake, view, aim, changed)
        if count is not None:
            log.info("%s: %d keys changed at %s", view.name, count, iso(aim.as_of))
            return _refreshed(view, aim, count, started)
        log.info("%s: another refresh won, try %d", name, attempt + 1)
    raise LedgerError(
        f"{TRIES} refreshes in a row lost against another writer",
        where=name,
        expected="one writer: stop the other",
    )


def _say(name: str, way: Way) -> None:
    if way.drift:
        log.error("%s was wrong in %d keys and is recomputed; please report this", name, way.drift)
    elif way.why:
        log.info("%s is recomputed: %s", name, way.why)


def _goal(
    there: Standing, as_of: datetime | None, batch: int, not_below: bool
) -> tuple[datetime, int] | None:
    if as_of is None:
        return None
    if not_below and there.as_of:
        as_of = max(as_of, there.as_of)
    return as_of, max(batch, there.batch)


def _hours_for(
    lake: Lake, view: FeatureView, way: Way, batch: int, buckets: Sequence[Commit]
) -> Hours | None:
    """Yield the hour buckets to read; None where there are none, none is needed, or gold was found
    wrong."""
    adds_up = way.mode == "incremental" and view.invertible
    return None if adds_up or way.drift else hours.usable(lake, view, batch, buckets)


def changes(
    lake: Lake,
    view: FeatureView,
    as_of: datetime,
    batch: int,
    by_hours: Hours | None = None,
    *,
    strictly: bool = False,
    version: int | None = None,
) -> DataFrame:
    """Yield the keys whose features differ from gold, with their new values and the action to
    take; whole hours are read from `by_hours` where given. `strictly` and `version`: see
    `statement`."""
    return _over_horizon(
        "changes", lake, view, as_of, batch, by_hours, strictly=strictly, version=version
    )


def _over_horizon(
    name: str,
    lake: Lake,
    view: FeatureView,
    as_of: datetime,
    batch: int,
    by_hours: Hours | None,
    frames: Mapping[str, DataFrame] | None = None,
    *,
    strictly: bool = False,
    version: int | None = None,
) -> DataFrame:
    args: dict[str, Any] = {"as_of": as_of, "batch": batch}
    frames = dict(frames or {})
    if by_hours:
        frames |= hours.frames(lake, view, by_hours)
        args["hours"] = by_hours.batch
    text = statement(name, view, by_hours=bool(by_hours), strictly=strictly, version=version)
    return ask(lake.spark, text, args, frames)


def moved(lake: Lake, view: FeatureView, there: Standing, as_of: datetime, batch: int) -> DataFrame:
    """Yield the keys of which a bucket row entered or left a window since the ledger in `there`,
    with what to add to each feature where features add up."""
    assert there.as_of is not None
    args = {
        "as_of": as_of,
        "batch": batch,
        "as_of_before": there.as_of,
        "batch_before": there.batch,
        "low": min(as_of, there.as_of),
        "high": max(as_of, there.as_of),
    }
    name = "delta" if view.invertible else "affected_keys"
    return ask(lake.spark, statement(name, view), args)


@contextmanager
def _changed(lake: Lake, view: FeatureView, aim: _Aim) -> Iterator[DataFrame]:
    """Yield the keys that differ, kept while they are read, computed the way that was chosen.

    Gold is read at the version where it stands. Were it read as the newest, the MERGE's commit
    would have Spark plan what is kept here once more, for nobody.
    """
    version = aim.standing.version
    if aim.way.mode == "recompute":
        strictly = bool(aim.way.why)
        rows = changes(
            lake, view, aim.as_of, aim.batch, aim.hours, strictly=strictly, version=version
        )
        with cached(rows) as changed:
            yield changed
        return
    with cached(moved(lake, view, aim.standing, aim.as_of, aim.batch)) as rows:
        frames = {f"{view.name}_moved": rows}
        name = "incremental" if view.invertible else "affected"
        fresh = _over_horizon(
            name, lake, view, aim.as_of, aim.batch, aim.hours, frames, version=version
        )
        with cached(fresh) as changed:
            yield changed


@contextmanager
def _emitted(
    lake: Lake, view: FeatureView, aim: _Aim, *, emitted: DataFrame, whole: bool
) -> Iterator[DataFrame]:
    """Yield the keys that the state emitted and gold does not hold so, kept while they are read."""
    with cached(_emitted_rows(lake, view, aim.standing, emitted, whole)) as changed:
        yield changed


def _emitted_rows(
    lake: Lake, view: FeatureView, there: Standing, emitted: DataFrame, whole: bool
) -> DataFrame:
    text = statement("emitted", view, version=there.version)
    return ask(lake.spark, text, {"whole": whole}, {f"{view.name}_emitted": emitted})


def _merge_changes(lake: Lake, view: FeatureView, aim: _Aim, changed_by: Changed) -> int | None:
    """Merge and count what differs; None when another refresh took the number, or the table,
    first."""
    started = time.monotonic()
    if aim.standing.distrust and difference(lake.spark, tables.features(view)):
        rows = _over_horizon("anew", lake, view, aim.as_of, aim.batch, None)
        told = {**_told(lake, view, aim), "seconds": aim.spent}
        return merging.write_anew(lake, view, rows, told)
    with changed_by(lake, view, aim) as changed:
        counts: dict[str, int] = dict(changed.groupBy("__action").count().collect())
        reach("refresh.changes_computed")
        seconds = {**aim.spent, "diff": round(time.monotonic() - started, 3)}
        told = {**_told(lake, view, aim), "seconds": seconds}
        done = merging.merge(lake, view, changed, counts, aim.as_of, told)
    reach("refresh.merged")
    return done


def remove_empty(lake: Lake, view: FeatureView, before: datetime) -> int | None:
    """Remove the rows of gold that have been empty since before a time, in a commit that holds what
    gold held; yield how many, None when a refresh came first or has to."""
    there = lake.standing(view)
    if there.distrust or there.ledger is None or there.as_of is None:
        return None
    rows = ask(lake.spark, statement("emptied", view), {"before": before})
    with cached(rows):
        counts = {"delete": rows.count()}
        kept = {n: told for n, told in there.ledger.items() if n not in ("why", "drift")}
        told = {
            **kept,
            "refresh": there.refresh,
            "from_batch": there.batch,
            "seconds": {},
            ledger.UPKEEP: f"removed {counts['delete']} keys empty since {iso(before)}",
        }
        if not counts["delete"]:
            return 0
        return merging.merge(lake, view, rows, counts, there.as_of, told)


def _told(lake: Lake, view: FeatureView, aim: _Aim) -> dict[str, object]:
    earlier = aim.standing.as_of is not None and aim.as_of < aim.standing.as_of
    return {
        "generation": lake.generation,
        "definition": view.definition,
        "refresh": aim.standing.refresh,
        "from_batch": aim.standing.batch,
        "batch": aim.batch,
        "as_of": iso(aim.as_of),
        **({} if aim.buckets is None else {"buckets": aim.buckets}),
        **aim.way.told(),
        **({"earlier": True} if earlier else {}),
    }


def _refreshed(view: FeatureView, aim: _Aim, changed: int, started: float) -> Refreshed:
    seconds = time.monotonic() - started
    return Refreshed(view.name, aim.as_of, aim.way.mode, aim.batch, changed, True, seconds)


def _unchanged(view: FeatureView, there: Standing, started: float) -> Refreshed:
    mode = str((there.ledger or {}).get("mode", "recompute"))
    seconds = time.monotonic() - started
    return Refreshed(view.name, there.as_of, mode, there.batch, 0, False, seconds)
