"""The accepted events that a view's buckets must hold at a batch, and gold compared with them.

    checkpoint of feature: batch b has read the events up to version v
    log of events:         the first append at v or later is clean's batch c
    known at b:            the rows of events with a batch below c

So neither OPTIMIZE nor VACUUM matters, and no event counts that feature has not read. The features
are computed with the same buckets and windows, but of the events alone: what the bucket table has
lost, or has twice, is different.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidemill.errors import LakeError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.checkpoints import Offset
from tidemill.lake.commits import ledger
from tidemill.lake.commits.ledger import GoldState
from tidemill.lake.relations import Answer, Relation
from tidemill.lake.statements import statement
from tidemill.pipeline.silver import minute_buckets

log = logging.getLogger(__name__)

ALL = 10_000  # parts, by the hash of a key, of which a sample takes some
WHOLE = ("gold", "compared")  # the clauses of a comparison of all parts
SHARE, LEAST, MOST = 0.01, 100, 10_000  # of the keys; so many at least, and at most


@dataclass(frozen=True)
class Comparison:
    """How many keys are not empty on either side, how many of them have an unequal feature, and
    which engine says so."""

    keys: int
    different: int
    engine: str

    @classmethod
    def of(cls, answer: Answer) -> Comparison:
        """Return what the one row of an answer says."""
        (row,) = answer.rows
        return cls(row["keys"], row["different"], answer.engine)


def compare(
    lake: Lake, view: FeatureView, version: int, as_of: datetime, batch: int, parts: int = ALL
) -> Comparison:
    """Compare a version of gold with the features of the events known at `batch`.

    Of `ALL` parts of the keys only `parts` are compared, others at each as_of. Raises LakeError
    when it can no longer be said which events those are.
    """
    rows = {
        "gold_rows": Relation(lake.tables.of(view).gold.name, version),
        "known_events": known_events(lake, view, batch),
    }
    args: dict[str, Any] = {"as_of": as_of, "batch": batch}
    if parts == ALL:
        return Comparison.of(lake.ask(statement("event_differences", view, WHOLE), args, rows))
    args["sample"] = parts
    return Comparison.of(lake.ask(statement("event_differences", view), args, rows))


def check_sample(lake: Lake, view: FeatureView, state: GoldState, keys: int) -> int:
    """Return how many keys of a sample of gold's `keys` differ from the accepted events; 0 when it
    can no longer be said which events they are."""
    assert state.as_of is not None
    wanted = min(max(keys * SHARE, LEAST), MOST)
    parts = min(math.ceil(ALL * wanted / max(keys, 1)), ALL)
    try:
        return compare(lake, view, state.version, state.as_of, state.batch, parts).different
    except LakeError as error:
        log.info("%s is not compared with the events: %s", lake.tables.of(view).gold.name, error)
        return 0


def known_events(lake: Lake, view: FeatureView, batch: int) -> Relation:
    """Return the accepted events that feature had read at the end of its batch."""
    name = lake.tables.events.name
    offset = _read_to(lake, view, batch)
    newest = lake.commits(name, 1)[0].version
    unread = lake.commits(name, newest - offset.version + 1) if offset.version <= newest else []
    if unread and unread[-1].version > offset.version:
        raise _cannot_say(lake, view, batch, f"the log of {name} no longer tells")
    if offset.within:
        raise _cannot_say(lake, view, batch, f"it ends within version {offset.version} of {name}")
    first = min((int(a.ledger["batch"]) for a in ledger.appends(unread) if a.ledger), default=None)
    if first is None and (last := ledger.newest_append(lake, name, lake.generation)) is not None:
        assert last.ledger is not None
        first = int(last.ledger["batch"]) + 1  # what clean appends from now on is not known either
    return Relation(name, before_batch=first)


def _read_to(lake: Lake, view: FeatureView, batch: int) -> Offset:
    """Return how far feature had read at the end of a batch. Of the newest batch, whose own offset
    may be purged after a hundred batches without a bucket, that is as far as it has read at all."""
    checkpoint = lake.checkpoint("feature")
    if checkpoint.identity().get("generation") != lake.generation:
        raise _cannot_say(
            lake, view, batch, f"there is no checkpoint of feature in {checkpoint.folder}"
        )
    offset = checkpoint.offset(batch)
    if offset is None and minute_buckets.bucketed(lake, view).batch == batch:
        offset = checkpoint.offset()
    if offset is None:
        raise _cannot_say(lake, view, batch, "the checkpoint of feature no longer tells")
    return offset


def _cannot_say(lake: Lake, view: FeatureView, batch: int, why: str) -> LakeError:
    return LakeError(
        f"cannot say which events batch {batch} had read: {why}",
        where=lake.tables.of(view).gold.name,
        expected="the newest version, and feature done with what it has begun; or --from buckets",
    )
