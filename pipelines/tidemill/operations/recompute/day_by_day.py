"""Days recomputed one after another; each is one commit, so a pass that is killed loses one day's
work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime
from typing import Any

from pyspark.sql import functions as F

from tidemill.errors import UsageError
from tidemill.features.suggestions import did_you_mean
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import failpoints, writer
from tidemill.lake.commits.races import past_others
from tidemill.lake.schema import creation, sql_views
from tidemill.lake.schema.table_properties import tell
from tidemill.lake.schema.verification import difference
from tidemill.lake.tables import Table, day_tables
from tidemill.lake.tables.day_tables import DAY, DEFINITION, PARTITION, ROW
from tidemill.lake.times import at
from tidemill.operations.recompute import wanted_days
from tidemill.operations.recompute.stream_days import StreamDays, kept
from tidemill.operations.recompute.view_days import ViewDays
from tidemill.operations.recompute.wanted_days import Days, KnownEvents

log = logging.getLogger(__name__)

Facts = dict[str, Any]


def recompute(
    lake: Lake,
    names: Collection[str],
    day: date | None,
    now: datetime,
    found: Mapping[str, Mapping[str, int]],
    tell: Callable[[Facts], None],
) -> list[Facts]:
    """Recompute a day, or those that are due, of each view and stream, or of those named; return
    for each day `{name, kind, day, why, rows, different, causes}`.

    `found` is what is known to differ in gold, by view and cause: it is told with the view's newest
    day. UsageError for a name of which no day can be recomputed, and for a day that is not over.
    """
    chosen = [each for each in _all(lake) if not names or each.name in names]
    _refuse_unknown(lake, names, {each.name for each in chosen})
    for each in chosen:
        _refuse_taken(each)
    known = KnownEvents.of(lake)
    if known is None:
        return []
    plan = {each.name: wanted_days.wanted(lake, each, known, day) for each in chosen}
    done = []
    for each in chosen:
        days = _made(lake, each.table, plan[each.name])
        for number, (wanted, why) in enumerate(days, 1):
            causes = found.get(each.name, {}) if number == len(days) else {}
            done.append(_day(lake, each, wanted, why, known, now, causes))
            tell(done[-1])
        if day is None:
            wanted_days.look_at(lake, each.table, known)
    sql_views.make_views(lake)
    return done


def _all(lake: Lake) -> Iterator[Days]:
    for view in lake.pipeline.views:
        yield ViewDays(lake, view)
    for stream in lake.pipeline.streams:
        if stream.recomputable:
            yield StreamDays(lake, stream)


def _refuse_unknown(lake: Lake, names: Collection[str], known: Collection[str]) -> None:
    others = {one.name: one.word for one in lake.pipeline.streams if not one.recomputable}
    for name in names:
        if name in known:
            continue
        if name in others:
            why = {
                "distinct": "which of equal events is the first depends on how they came",
                "process": "what a processor gives depends on how events came",
            }.get(others[name], "its rows follow late events by themselves")
            raise UsageError(f"{name} is not recomputed: {why}", where="--only")
        every = [each.name for each in _all(lake)]
        raise UsageError(
            f"no view or stream {name!r}{did_you_mean(name, every)}",
            where="--only",
            expected=", ".join(every),
        )


def _refuse_taken(days: Days) -> None:
    if names := day_tables.taken(days.table):
        raise UsageError(
            f"{days.name} has a column called {names[0]}, which its recomputed days have too",
            where="--only",
            expected=f"a name other than {', '.join(day_tables.OWN)}",
        )


def _made(lake: Lake, table: Table, days: list[tuple[date, str]]) -> list[tuple[date, str]]:
    """Make the table; return the days to recompute. One of other columns, or of values that follow
    otherwise from the events, than is declared is made again: due are then the days that it loses
    too, as it says itself, so that they stay due when this pass is killed."""
    if not lake.has(table.name):
        creation.ensure(lake, table)
        return days
    declared = table.properties.get(DEFINITION, "")
    made_by = lake.metadata(table.name).properties.get(DEFINITION)
    if not difference(lake, table) and made_by in (None, declared):
        creation.ensure(lake, table)
        if declared and not made_by:  # of an earlier version
            tell(lake.spark, table.name, {DEFINITION: declared})
        return days
    lost = wanted_days.loses(lake, table)
    creation.create(lake, table, replace=True, said=wanted_days.of_lost(lost))
    return sorted({**dict.fromkeys(lost, wanted_days.MADE_AGAIN), **dict(days)}.items())


def _day(
    lake: Lake,
    days: Days,
    day: date,
    why: str,
    known: KnownEvents,
    now: datetime,
    found: Mapping[str, int],
) -> Facts:
    """Recompute a day and put it in the place of what was known of it, in one commit."""
    with kept(days.rows(day, known)) as rows:
        count = rows.count()
        causes = {**found, **days.differences(day, rows, known)}
        different = sum(causes.values())
        facts = {"name": days.name, "kind": days.kind, "day": day.isoformat(), "why": why}
        told = {**facts, "rows": count, "different": different, "causes": causes}
        of_day = lake.spark.range(1).select(
            F.lit(DAY).alias("row_kind"),
            at(now).alias("recomputed_at"),
            F.lit(lake.generation).alias("generation"),
            F.lit(known.batch).cast("bigint").alias("events_batch"),
            F.lit(count).cast("bigint").alias("row_count"),
            F.lit(different).cast("bigint").alias("different"),
            _map(causes),
        )
        written = rows.withColumn("row_kind", F.lit(ROW)).unionByName(
            of_day, allowMissingColumns=True
        )
        written = written.withColumn(PARTITION, F.lit(day)).select(*days.table.column_names)
        failpoints.reach("recompute.computed")
        ledger = {"generation": lake.generation, "batch": known.batch, "recompute": told}
        scope = f"{PARTITION} = DATE '{day.isoformat()}'"
        past_others(
            lambda: writer.write(written.coalesce(1), days.table.name, ledger, replaces_where=scope)
        )
    failpoints.reach("recompute.written")
    log.info("recompute of %s, %s: %d rows, %d different", days.name, day, count, different)
    return told


def _map(causes: Mapping[str, int]) -> Any:
    pairs = [F.lit(each) for pair in causes.items() for each in pair]
    made = F.create_map(*pairs) if pairs else F.create_map()
    return made.cast("map<string, bigint>").alias("causes")
