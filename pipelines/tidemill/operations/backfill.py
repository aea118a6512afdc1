"""Rebuild of a part from the silver events: some features, some keys, or what came since a time.

    --features   the buckets lack a partial: columns are added, and rows that hold only them
    --keys       the buckets of these keys are replaced
    --since      the buckets from a time on are replaced
    --views      all buckets of a view that lacks events (see `coverage`) are replaced

Each goes a day of events at a time, and is gone on with where it was killed. Features are added to
the bucket table itself (see `refilling`); until they are through, a view that needs them is
refused. The others are made beside it and replaced in one commit (see
`staging`), so nobody reads half of them. Every such commit has a ledger that says `rebuild`: what
was made of the rows before it (gold, hours, arrivals) is made again by whoever writes next. At the
end gold is recomputed, in one commit.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.errors import LakeError, UsageError
from tidemill.features import FeatureView
from tidemill.lake import catalog as lakes
from tidemill.lake import tables
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.integrity import coverage, interrupted_rebuilds
from tidemill.lake.open import open_for_writing
from tidemill.lake.provenance import made_of
from tidemill.lake.schema import creation, evolution, expired_before
from tidemill.operations import backfill_rows, bucket_replacement, missing_partials
from tidemill.operations.bucket_replacement import Read, Staging
from tidemill.pipeline import batch_log
from tidemill.pipeline.connection import Opening
from tidemill.pipeline.observer import Callback, Tell
from tidemill.pipeline.queries import Pipeline, refresh_view
from tidemill.pipeline.runner import Recorder, Stop, finish
from tidemill.pipeline.silver import clean as silver
from tidemill.pipeline.totals import Totals
from tidemill.sources.null_source import Absent

Say = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What is to be made again: features by name, whole views, or keys and a time from which
    on."""

    features: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    keys: tuple[Mapping[str, str], ...] = ()
    since: datetime | None = None

    def spec(self, view: FeatureView, partials: Sequence[str]) -> str:
        """Return a name for the same rebuild of these partials of a view, made the same way."""
        made = {p.name: made_of(view, p) for p in view.partials if p.name in partials}
        said = [sorted(made.items()), [dict(key) for key in self.keys], str(self.since)]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]

    def rebuild(
        self,
        spark: SparkSession,
        opening: Opening,
        definition: PipelineDefinition,
        say: Say,
        tell: Tell,
    ) -> dict[str, Any]:
        """Rebuild the part in a lake that the caller holds; return the totals of `run`, and the
        bucket rows written."""
        return Rebuild(opening, definition, self, say, tell, Stop()).run(spark)


def wanted(
    source: str | None,
    features: Sequence[str],
    views: Sequence[str],
    keys: Sequence[Mapping[str, str]],
    since: datetime | None,
) -> Wanted | None:
    """Return the part to rebuild, None for all of it from bronze; UsageError for more than one
    thing, or none."""
    words = {"source": source, "features": features, "views": views, "keys, since": keys or since}
    parts = [word for word, said in words.items() if said]
    if len(parts) != 1:
        expected = 'source="bronze", features, views, or keys and since'
        found = " and ".join(parts) or "nothing"
        raise UsageError(f"a rebuild is of one thing, found {found}", expected=expected)
    if source:
        if source != "bronze":
            raise UsageError(f"cannot rebuild from {source!r}", where="source", expected="bronze")
        return None
    return Wanted(tuple(features), tuple(views), tuple(keys), since)


@dataclass
class Rebuild:
    """A rebuild under way: how to open the lake, and whom to tell."""

    opening: Opening
    definition: PipelineDefinition
    wanted: Wanted
    say: Say
    tell: Tell
    stop: Stop

    def run(self, spark: SparkSession) -> dict[str, Any]:
        """Rebuild the part; return the totals of `run`, and the bucket rows written."""
        started = time.monotonic()
        _refuse_stateful(self.definition)
        for view in self.definition.views:
            backfill_rows.check_part(view, self.wanted.keys)
        for name in self.wanted.views:
            self.definition.view(name)
        lakes.register(spark, self.opening.place)
        with self.stop.on_signals():
            lake, rows = self._features() if self.wanted.features else self._replaced()
            self._forget_expired(lake)
            pipeline = self._pipeline(lake)
            self._refresh(pipeline)
        found = Totals().summary(pipeline, time.monotonic() - started)
        return {**found, "buckets": rows}

    def _pipeline(self, lake: Lake) -> Pipeline:
        return Pipeline(lake, Absent(), self.opening.clock, lake.pipeline.clock)

    def _caught_up(self, lake: Lake) -> None:
        """Have the feature query read every event that there is."""
        pipeline = replace(self._pipeline(lake), refreshes=False)
        pipeline.claim(("feature",))
        recorder = Recorder(pipeline, [Callback(self.tell)])
        finish("feature", pipeline, self.stop, recorder)
        recorder.record()

    def _features(self) -> tuple[Lake, int]:
        """Add what the buckets lack for the features; return the lake as it is declared."""
        spark = self.opening.session()
        lacking = missing_partials.partials(spark, self.definition, self.wanted.features)
        before = missing_partials.without(self.definition, lacking)
        lake = open_for_writing(spark, self.opening.place, before)
        interrupted_rebuilds.refuse_from_bronze(lake)
        self._caught_up(lake)
        rows = 0
        for view in self.definition.views:
            if partials := lacking[view.name]:
                rows += self._backfill(replace(lake, pipeline=self.definition), view, partials)
        return open_for_writing(spark, self.opening.place, self.definition), rows

    def _backfill(self, lake: Lake, view: FeatureView, partials: tuple[str, ...]) -> int:
        name, generation = tables.buckets(view).name, lake.generation
        state = backfill_rows.state(lake, name, self.wanted.spec(view, partials))
        newest = backfill_rows.newest_event_batch(lake)
        if "until" not in state:
            self.say(f"{name}: {', '.join(partials)} from the events")
            backfill_rows.make_room(lake, view, partials, state["id"])
            state |= {"until": newest, "to": newest, "aim": newest, "tails": 0}
            backfill_rows.keep(lake, name, state)
        events = lake.spark.table(tables.events(lake.pipeline).name)
        known = events.where(F.col("batch") <= state["until"])
        batch, rows = silver.bucketed(lake, view).batch, 0
        told = {
            "generation": generation,
            "batch": batch,
            ledger.UPKEEP: "features from events",
            ledger.REBUILD: state["id"],
        }
        app_id = f"{lake.app_id(tables.buckets(view))}:{state['id']}"
        days = list(backfill_rows.days(known, lake.pipeline.kept_of(view), None))
        for place, day in list(enumerate(days))[state["done"] :]:
            made = backfill_rows.only(lake, view, backfill_rows.of_day(known, day), batch, partials)
            words = f"{place + 1}/{len(days)}  {day:%Y-%m-%d}"
            rows += self._written(lake, name, made, told, words, txn=(app_id, place))
            state |= {"done": place + 1}
            backfill_rows.keep(lake, name, state)
        while backfill_rows.aim_at_later(lake, name, state, newest):
            later = events.where(F.col("batch").between(state["to"] + 1, state["aim"]))
            made = backfill_rows.only(lake, view, later, batch, partials)
            txn = (app_id, backfill_rows.TAILS + state["tails"])
            rows += self._written(lake, name, made, told, "later events", txn=txn)
            state |= {"to": state["aim"], "tails": state["tails"] + 1}
            backfill_rows.keep(lake, name, state)
        backfill_rows.end(lake, view)
        return rows

    def _written(
        self,
        lake: Lake,
        name: str,
        rows: DataFrame,
        told: Mapping[str, Any],
        words: str,
        *,
        txn: tuple[str, int],
    ) -> int:
        """Append a chunk; return its number of rows."""
        self._refuse_stop(name)
        writer.write(rows, name, told, txn)
        return self._chunk_written(lake, name, words)

    def _refuse_stop(self, name: str) -> None:
        if self.stop:
            raise LakeError("stopped half-way", where=name, expected="the same rebuild again")

    def _chunk_written(self, lake: Lake, name: str, words: str) -> int:
        reach("rebuild.chunk_written")
        written = lake.commits(name, 1)[0].metric("numOutputRows")
        self.say(f"  {words}  {written:,} rows")
        return written

    def _replaced(self) -> tuple[Lake, int]:
        """Replace the buckets of some keys, or from a time on."""
        spark = self.opening.session()
        filled_from = None if self.wanted.keys else self.wanted.since
        lake = open_for_writing(
            spark,
            self.opening.place,
            self.definition,
            filled_from=filled_from,
            filled=self.wanted.views,
        )
        interrupted_rebuilds.refuse_from_bronze(lake)
        if self.wanted.views:
            return lake, sum(self._fill(lake, lake.pipeline.view(v)) for v in self.wanted.views)
        return lake, sum(self._replace(lake, view) for view in self.definition.views)

    def _fill(self, lake: Lake, view: FeatureView) -> int:
        """Make all buckets of a view that lacks events; return their rows, 0 if it lacks none."""
        why = coverage.late(lake).get(view.name)
        self.say(f"{view.name}: {why}" if why else f"{view.name}: its buckets lack no event")
        if not why:
            return 0
        rows = self._replace(lake, view)
        for hours in lake.known([tables.hours(view)]):
            creation.create(
                lake.spark, lake.place, lake.pipeline, hours, lake.generation, replace=True
            )
        coverage.covered(lake, view, lake.checkpoint("feature").finished())
        return rows

    def _forget_expired(self, lake: Lake) -> None:
        """Have the bucket tables say that what had expired since a time is there again."""
        if self.wanted.since and not self.wanted.keys:
            for view in self.definition.views:
                said = evolution.properties(lake.spark, tables.buckets(view).name)
                expired_before.filled(lake.spark, view, said, self.wanted.since)

    def _replace(self, lake: Lake, view: FeatureView) -> int:
        """Stage the replacement of a view's bucket rows, and put it in place; return its rows."""
        read = self._read(lake, view)
        if read is None:
            return 0
        spec = self.wanted.spec(view, [partial.name for partial in view.partials])
        staged = bucket_replacement.begin(
            lake, view, spec, read, self.wanted.keys, self.wanted.since
        )
        days = staged.days()
        for place, number, day in bucket_replacement.pending(staged):
            self._refuse_stop(staged.table.name)
            staged.append(staged.of_day(day), staged.begun, f"{day:%Y-%m-%d}")
            self._chunk_written(lake, staged.table.name, f"{place}/{number}  {day:%Y-%m-%d}")
        self._stage_later(staged, days)
        rows = self._put_in_place(staged, days)
        reach("rebuild.put_in_place")
        self.say(f"  {tables.buckets(view).name}  {rows:,} rows put in place")
        staged.drop()
        return rows

    def _put_in_place(self, staged: Staging, days: Sequence[datetime]) -> int:
        whole = bool(self.wanted.views)
        return staged.put_in_place(days[0], brings_batches=whole) if days else 0

    def _read(self, lake: Lake, view: FeatureView) -> Read | None:
        """Return what feature has read, None for nothing. Where that cannot be told exactly, it
        first reads what there is."""
        if (read := self._read_so_far(lake, view)) is not None:
            return read
        self._caught_up(lake)
        read = self._read_so_far(lake, view)
        if read is None and backfill_rows.newest_event_batch(lake) >= 0:
            raise LakeError(
                "what feature has read cannot be told from its checkpoint",
                where=str(lake.checkpoint("feature").folder),
                expected=f"`tidemill rebuild {lake.pipeline.pipeline} --from bronze`",
            )
        return read

    def _read_so_far(self, lake: Lake, view: FeatureView) -> Read | None:
        """Return what feature has read; a view that lacks events may not hold its newest batch."""
        read = bucket_replacement.read_so_far(lake, view)
        if read is None or not self.wanted.views:
            return read
        return replace(read, batch=max(read.batch, lake.checkpoint("feature").finished()))

    def _stage_later(self, staged: Staging, days: Sequence[datetime]) -> None:
        """Stage the events that feature read since the staging was begun."""
        before, now = staged.progress[0], self._read_so_far(staged.lake, staged.view)
        if not days or now is None or now == before:
            return
        rows = staged.of_later(days[0], before, now)
        staged.append(rows, now, staged.progress[1])
        self._chunk_written(staged.lake, staged.table.name, "later events")

    def _refresh(self, pipeline: Pipeline) -> None:
        for view in self.definition.views:
            refresh_view(
                pipeline.lake,
                view.name,
                pipeline.clock,
                pipeline.follows,
                force="rebuild of a part",
            )
        batch_log.record(pipeline.lake)


def _refuse_stateful(definition: PipelineDefinition) -> None:
    if definition.engine == "stateful":
        raise UsageError(
            "engine: stateful keeps its values in state, which has no parts to rebuild",
            where="rebuild",
            expected="--from bronze",
        )
