"""Rebuild of a part from the silver events: some features, some keys, or what came since a time.

    --features   the buckets lack a partial: columns are added, and rows that hold only them
    --keys       the buckets of these keys are replaced
    --since      the buckets from a time on are replaced

First the feature query reads what there is, so that every event is in the buckets; then the part
is made again a day of events at a time, each in one commit. The bucket table says in its properties
how far that is (see `refilling`), so a rebuild that was killed goes on where it stood; until it is
through, a run of a view that needs it is refused. At the end gold is recomputed, in one commit.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill import evolution, ledger, metrics, refilling, silver, tables
from tidemill import lake as lakes
from tidemill.errors import LakeError, UsageError
from tidemill.failpoints import reach
from tidemill.features import Feature, FeatureView
from tidemill.features.columns import partials_of
from tidemill.features.definition import PipelineDefinition
from tidemill.features.feature import RATIO
from tidemill.features.suggest import did_you_mean
from tidemill.lake import Lake
from tidemill.opening import Opening, source_of, writing_session
from tidemill.pipeline import Pipeline, refresh_view
from tidemill.running import Stop, Tell, Watch, finish, summary

Say = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What is to be made again: features by name, or keys and a time from which on."""

    features: tuple[str, ...] = ()
    keys: tuple[Mapping[str, str], ...] = ()
    since: datetime | None = None

    def spec(self, partials: Sequence[str]) -> str:
        """Yield a name for the same wish, of a view's partials."""
        said = [sorted(partials), [dict(key) for key in self.keys], str(self.since)]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]

    def rebuild(
        self, opening: Opening, definition: PipelineDefinition, say: Say, tell: Tell
    ) -> dict[str, Any]:
        """Rebuild the part; yield the totals of `run`, and the bucket rows written."""
        return Rebuild(opening, definition, self, say, tell, Stop()).run()


@dataclass
class Rebuild:
    """A rebuild under way: how to open the lake, and whom to tell."""

    opening: Opening
    definition: PipelineDefinition
    wanted: Wanted
    say: Say
    tell: Tell
    stop: Stop

    def run(self) -> dict[str, Any]:
        """Rebuild the part; yield the totals of `run`, and the bucket rows written."""
        started = time.monotonic()
        _refuse_stateful(self.definition)
        lakes.check_root(self.opening.place)
        command = f"tidemill rebuild {self.definition.pipeline}"
        with writing_session(self.opening, command) as spark:
            lakes.register(spark, self.opening.place)
            with self.stop.on_signals():
                lake, rows = self._features() if self.wanted.features else self._replaced()
                pipeline = self._pipeline(lake)
                self._refresh(pipeline)
            found = summary(pipeline, [], time.monotonic() - started)
            return {**found, "buckets": rows}

    def _pipeline(self, lake: Lake) -> Pipeline:
        source = source_of(lake.pipeline, self.opening)
        return Pipeline(lake, source, self.opening.clock, lake.pipeline.clock)

    def _caught_up(self, lake: Lake) -> None:
        """Have the feature query read every event that there is."""
        pipeline = replace(self._pipeline(lake), refreshes=False)
        pipeline.claim(("feature",))
        watch = Watch(pipeline, self.tell)
        finish("feature", pipeline, self.stop, watch)
        watch.record()

    def _features(self) -> tuple[Lake, int]:
        """Add what the buckets lack for the features; yield the lake as it is declared."""
        spark = self.opening.session()
        lacking = {
            view.name: _lacking(view, evolution.change(spark, view), self.wanted.features)
            for view in self.definition.views
        }
        self._refuse_unknown()
        before = _without(self.definition, lacking)
        lake = lakes.open_for_writing(spark, self.opening.place, before)
        self._caught_up(lake)
        rows = 0
        for view in self.definition.views:
            if partials := lacking[view.name]:
                rows += self._backfill(replace(lake, pipeline=self.definition), view, partials)
        return lakes.open_for_writing(spark, self.opening.place, self.definition), rows

    def _refuse_unknown(self) -> None:
        known = [evolution.name_of(f) for view in self.definition.views for f in view.features]
        for name in self.wanted.features:
            if name not in known:
                hint = did_you_mean(name, known)
                raise UsageError(f"unknown feature {name!r}{hint}", where="--features")

    def _backfill(self, lake: Lake, view: FeatureView, partials: tuple[str, ...]) -> int:
        name, generation = tables.buckets(view).name, lake.generation
        state = refilling.state(lake, name, self.wanted.spec(partials))
        newest = refilling.newest_event_batch(lake)
        if "until" not in state:
            self.say(f"{name}: {', '.join(partials)} from the events")
            refilling.make_room(lake, view, partials)
            state |= {"until": newest, "to": newest, "aim": newest, "tails": 0}
            refilling.keep(lake, name, state)
        events = lake.spark.table(tables.events(lake.pipeline).name)
        known = events.where(F.col("batch") <= state["until"])
        batch, rows = silver.bucketed(lake, view).batch, 0
        told = {"generation": generation, "batch": batch, ledger.UPKEEP: "features from events"}
        app_id = f"{lake.app_id(tables.buckets(view))}:{state['id']}"
        days = list(refilling.days(known, view, None))
        for place, day in list(enumerate(days))[state["done"] :]:
            made = refilling.only(lake, view, refilling.of_day(known, day), batch, partials)
            words = f"{place + 1}/{len(days)}  {day:%Y-%m-%d}"
            rows += self._written(lake, name, made, told, words, txn=(app_id, place))
            state |= {"done": place + 1}
            refilling.keep(lake, name, state)
        while refilling.aim_at_later(lake, name, state, newest):
            later = events.where(F.col("batch").between(state["to"] + 1, state["aim"]))
            made = refilling.only(lake, view, later, batch, partials)
            txn = (app_id, refilling.TAILS + state["tails"])
            rows += self._written(lake, name, made, told, "later events", txn=txn)
            state |= {"to": state["aim"], "tails": state["tails"] + 1}
            refilling.keep(lake, name, state)
        evolution.hold(lake.spark, view, evolution.properties(lake.spark, name))
        refilling.forget(lake, view)
        return rows

    def _replaced(self) -> tuple[Lake, int]:
        """Replace the buckets of some keys, or from a time on."""
        spark = self.opening.session()
        lake = lakes.open_for_writing(spark, self.opening.place, self.definition)
        self._caught_up(lake)
        return lake, sum(self._replace(lake, view) for view in self.definition.views)

    def _replace(self, lake: Lake, view: FeatureView) -> int:
        name = tables.buckets(view).name
        refilling.check_part(view, self.wanted.keys)
        state = refilling.state(lake, name, self.wanted.spec([p.name for p in view.partials]))
        batch, rows = silver.bucketed(lake, view).batch, 0
        events = lake.spark.table(tables.events(lake.pipeline).name)
        days = list(refilling.days(events, view, self.wanted.since))
        told = {"generation": lake.generation, "batch": batch, ledger.UPKEEP: "buckets from events"}
        for place, day in enumerate(days):
            if f"{day:%Y-%m-%d}" > state.get("through", ""):  # older days may have come since
                where = refilling.condition(day, self.wanted.keys, self.wanted.since)
                made = silver.buckets_of(refilling.of_day(events, day), batch, view).where(where)
                declared = tables.buckets(view).columns
                made = made.select(*(F.col(c.name).cast(c.type).alias(c.name) for c in declared))
                words = f"{place + 1}/{len(days)}  {day:%Y-%m-%d}"
                rows += self._written(lake, name, made, told, words, where=where)
                state |= {"through": f"{day:%Y-%m-%d}"}
                refilling.keep(lake, name, state)
        refilling.forget(lake, view)
        return rows

    def _written(
        self,
        lake: Lake,
        name: str,
        rows: DataFrame,
        told: Mapping[str, Any],
        words: str,
        *,
        txn: tuple[str, int] | None = None,
        where: str | None = None,
    ) -> int:
        """Append a chunk, or put it in the place of what the condition names; yield its rows."""
        if self.stop:
            raise LakeError("stopped half-way", where=name, expected="the same rebuild again")
        writer = rows.write.format("delta").mode("overwrite" if where else "append")
        writer = writer.option("userMetadata", json.dumps(told))
        if where:
            writer = writer.option("replaceWhere", where)
        if txn:
            writer = writer.option("txnAppId", txn[0]).option("txnVersion", txn[1])
        writer.saveAsTable(name)
        reach("rebuild.chunk_written")
        written = lake.commits(name, 1)[0].metric("numOutputRows")
        self.say(f"  {words}  {written:,} rows")
        return written

    def _refresh(self, pipeline: Pipeline) -> None:
        for view in self.definition.views:
            refresh_view(
                pipeline.lake,
                view.name,
                pipeline.clock,
                pipeline.follows,
                force="rebuild of a part",
            )
        metrics.record(pipeline.lake)


def _refuse_stateful(definition: PipelineDefinition) -> None:
    if definition.engine == "stateful":
        raise UsageError(
            "engine: stateful keeps its values in state, which has no parts to rebuild",
            where="rebuild",
            expected="--from bronze",
        )


def _lacking(
    view: FeatureView, found: evolution.Change, features: Iterable[str]
) -> tuple[str, ...]:
    """Yield the partials of the named features and those that the buckets do not hold."""
    if found.kind == "bronze":
        raise LakeError(found.why, where=f"view {view.name}", expected="--from bronze")
    unnamed = [name for name in found.features if name not in features]
    if unnamed:
        every = ",".join(found.features)
        raise UsageError(
            f"the buckets hold nothing for {', '.join(unnamed)} either",
            where="--features",
            expected=f"--features {every}",
        )
    named = (f for f in view.features if evolution.name_of(f) in features)
    made = (p.name for f in named for p in partials_of(f, view.types, view.event_time))
    return tuple(dict.fromkeys((*found.missing, *made)))


def _without(
    definition: PipelineDefinition, lacking: Mapping[str, tuple[str, ...]]
) -> PipelineDefinition:
    """Yield the pipeline with the features that the buckets hold, which can be run as it is."""
    return definition.model_copy(
        update={"views": tuple(_held(view, lacking[view.name]) for view in definition.views)}
    )


def _held(view: FeatureView, lacking: tuple[str, ...]) -> FeatureView:
    def stays(feature: Feature) -> bool:
        return feature.aggregate != RATIO and not evolution.needs(view, feature, lacking)

    kept = tuple(feature for feature in view.features if stays(feature))
    if not lacking:
        return view
    if not kept:
        raise LakeError(
            "the buckets hold nothing that the view declares",
            where=f"view {view.name}",
            expected="--from bronze",
        )
    fields = {name: getattr(view, name) for name in type(view).model_fields}
    return FeatureView.model_validate({**fields, "features": kept})
