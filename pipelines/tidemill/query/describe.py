"""What a view is and how it stands: its features, its tables, how fresh gold is, what the newest
ledgers say.

Only reads, and takes no lock: files and bytes are those of DESCRIBE DETAIL, rows those that the
log's statistics count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidemill.config.settings import Clock, iso
from tidemill.features import FeatureView
from tidemill.features.columns import Column
from tidemill.lake.catalog import Lake
from tidemill.lake.commits.ledger import Commit
from tidemill.lake.integrity import interrupted_rebuilds
from tidemill.lake.tables import Table

Described = dict[str, Any]


def describe(lake: Lake, view: FeatureView, clock: Clock) -> Described:
    """Return `{view, pipeline, keys, bucket, engine, as_of, age_seconds, gold_version, features,
    tables, unfinished}`; the last one lists rebuilds that were stopped half-way.

    The age is what the clock shows beyond gold's as_of. A feature is exact at its bucket: at a
    window's edge it is off by the events of one bucket at worst, `edge`.
    """
    state = lake.gold_state(view)
    age = round((clock.now() - state.as_of).total_seconds()) if state.as_of else None
    return {
        "view": view.name,
        "pipeline": lake.pipeline.pipeline,
        "keys": list(view.keys),
        "bucket": view.bucket,
        "engine": lake.pipeline.engine,
        "as_of": state.as_of and iso(state.as_of),
        "age_seconds": age,
        "gold_version": state.version,
        "features": [_feature(view, column) for column in view.shown],
        "tables": [_table(lake, table) for table in _tables(lake, view)],
        "unfinished": interrupted_rebuilds.of_view(lake, view),
    }


def _feature(view: FeatureView, column: Column) -> Described:
    return {
        "feature": column.name,
        "type": column.type,
        "window": column.window.bounds(),
        "what": column.what,
        "empty": column.empty,
        "edge": view.bucket,
    }


def _tables(lake: Lake, view: FeatureView) -> Iterator[Table]:
    """Yield the tables that the view is made of, in the order of the flow, those that are there."""
    declared, own = lake.tables, lake.tables.of(view)
    yield from (declared.bronze, declared.quarantine)
    yield from (table for one in declared.dimensions.values() for table in one.all)
    yield declared.events
    yield from declared.streams.values()
    yield from (t for t in (own.buckets, own.hours, own.arrivals) if lake.has(t.name))
    yield from (own.gold, declared.batches)


def _table(lake: Lake, table: Table) -> Described:
    detail = lake.detail(table.name)
    return {
        "table": table.name,
        "what": table.comment,
        "rows": lake.rows(table.name),
        "files": detail.files,
        "bytes": detail.bytes,
        "newest": _newest(lake.commits(table.name)),
    }


def _newest(commits: list[Commit]) -> Described | None:
    """Return the newest commit that tells how far the table has read, else the newest that moved
    rows."""
    moved = [commit for commit in commits if commit.moves_data]
    newest = next((commit for commit in moved if commit.ledger), None) or next(iter(moved), None)
    if newest is None:
        return None
    return {
        "version": newest.version,
        "operation": newest.operation,
        "committed_at": iso(newest.at),
        "ledger": dict(newest.ledger) if newest.ledger else None,
    }
