"""Which `history` was declared when a record was landed: `tidemill.history` of the bronze table.

    history: 400d ──land──► records ──┐ history: 30d from here on
                                      └─► those up to the newest of then: 400d, later ones: 30d

How old an event may be is asked by clean, and again when a rebuild judges all of bronze. A
`history` that was made shorter since holds for what is landed from then on: what was taken stays
taken. One that was made longer holds for all. A lake of before the property begins with the first
opening for writing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from pyspark.sql import functions as F

from tidemill.features.windows import duration
from tidemill.lake.catalog import Lake, LongerHistory
from tidemill.lake.schema.table_properties import tell
from tidemill.lake.tables import HISTORY


def longer(lake: Lake, said: Mapping[str, str]) -> tuple[LongerHistory, ...]:
    """Return until when records were landed under a longer `history` than the declared one, the
    oldest first; `said` are the bronze table's properties."""
    listed = json.loads(said.get(HISTORY, "{}")).get("before", [])
    before = (LongerHistory(until, timedelta(seconds=seconds)) for until, seconds in listed)
    return tuple(one for one in before if one.history > lake.pipeline.kept)


def settle(lake: Lake, said: Mapping[str, str]) -> Lake:
    """Have the bronze table say which `history` holds from now on; return the lake with what is
    longer than that."""
    declared, last = lake.pipeline.history, json.loads(said.get(HISTORY, "{}")).get("history")
    if last == declared:
        return lake
    before = list(lake.longer)
    if last and duration(last) > lake.pipeline.kept:
        newest = _newest(lake)
        if newest is not None and (not before or before[-1].until < newest):
            before.append(LongerHistory(newest, duration(last)))
    tell(lake.spark, lake.tables.bronze.name, {HISTORY: _text(declared, before)})
    return replace(lake, longer=tuple(before))


def _text(declared: str, before: Sequence[LongerHistory]) -> str:
    listed = [[one.until, int(one.history.total_seconds())] for one in before]
    return json.dumps({"history": declared, "before": listed})


def _newest(lake: Lake) -> int | None:
    """Return when the newest record was landed, in microseconds; None for an empty table."""
    rows = lake.spark.table(lake.tables.bronze.name)
    newest: int | None = rows.agg(F.unix_micros(F.max("ingested_at"))).collect()[0][0]
    return newest
