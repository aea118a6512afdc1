"""Audit: do online store, gold, recompute, training set and what was answered say the same?

    sample of keys, by hash ──► gold at the store's version   ◄── what all are compared with
                                  │ store       its rows
                                  │ recompute   the buckets, at that version's batch and as_of
                                  │ training    training_set(mode="served"), at that version's time
    response log ───────────────► gold's history, at the version of each answer; one from slices:
                                  the events, by the batch of clean that it names

A key that is not there counts as its declared empty values, on either side. What is not found and
should be is `missing`, what is found and should not be is `extra`, anything else that is unequal a
`mismatch`; 0 of each is expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.settings import Clock, iso, micros_of
from tidemill.errors import LakeError, StoreError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.commits.ledger import Commit
from tidemill.lake.parameters import ask
from tidemill.lake.relations import Relation
from tidemill.lake.statements import statement
from tidemill.online import packing
from tidemill.online.open_store import open_store
from tidemill.online.published_view import PublishedView
from tidemill.online.store_address import StoreAddress
from tidemill.training import logged_answers
from tidemill.training.training_set import OUTSIDE, Wanted, training_set

SAMPLE = 1_000
EXAMPLES = 10
Key = tuple[Any, ...]
Rows = Mapping[Key, Sequence[Any]]


@dataclass
class Tally:
    """How often a source's values of a feature were compared, and in what they differ."""

    source: str
    feature: str
    compared: int = 0
    mismatch: int = 0
    missing: int = 0
    extra: int = 0

    @property
    def different(self) -> int:
        """How many values are not as expected."""
        return self.mismatch + self.missing + self.extra


@dataclass(frozen=True)
class Example:
    """One value that is not as expected."""

    source: str
    feature: str
    key: Key
    expected: Any
    found: Any


@dataclass
class Comparison:
    """All that was compared so far; at most so many examples are kept."""

    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)

    def compare(
        self,
        source: str,
        feature: str,
        key: Key,
        expected: tuple[Any, bool],
        found: tuple[Any, bool],
    ) -> None:
        """Count a value; both sides come with whether they have the key."""
        tally = self.tallies.setdefault((source, feature), Tally(source, feature))
        tally.compared += 1
        if same(expected[0], found[0]):
            return
        if not found[1]:
            tally.missing += 1
        elif not expected[1]:
            tally.extra += 1
        else:
            tally.mismatch += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(Example(source, feature, key, expected[0], found[0]))

    def compare_rows(
        self,
        source: str,
        names: Mapping[str, int],
        empty: Sequence[Any],
        keys: Sequence[Key],
        expected: Rows,
        found: Rows,
    ) -> None:
        """Count the features, by their places, of each key."""
        for key in keys:
            wanted, there = expected.get(key), found.get(key)
            for name, place in names.items():
                self.compare(
                    source,
                    name,
                    key,
                    ((empty if wanted is None else wanted)[place], wanted is not None),
                    ((empty if there is None else there)[place], there is not None),
                )


@dataclass(frozen=True)
class _Sampled:
    """The keys that are looked at, and the version of gold at which they are."""

    lake: Lake
    view: FeatureView
    state: PublishedView
    commit: Commit
    keys: DataFrame

    def rows(self, frame: DataFrame) -> dict[Key, list[Any]]:
        """Return the sampled rows of a frame with keys and features, values as a store has them."""
        names = [column.name for column in self.view.shown]
        count = len(self.view.keys)
        sampled = frame.join(F.broadcast(self.keys), [*self.view.keys], "left_semi")
        table = sampled.select(*self.view.keys, *names).toArrow()
        columns = [column.to_pylist() for column in table.columns]
        rows = zip(*columns, strict=True) if columns else ()
        return {row[:count]: packing.unpack(packing.pack(row[count:])) for row in rows}


def audit(
    lake: Lake,
    view: FeatureView,
    address: StoreAddress,
    clock: Clock,
    *,
    sample: int = SAMPLE,
    responses: Path | None = None,
    on_step: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Return what was compared: `{view, gold_version, as_of, keys, compared, different, sources,
    examples, skipped}`; a source has its rates by feature.

    `sample` keys are drawn by a hash that changes with the day of as_of; of `responses`, the
    response log of `tidemill serve`, as many answered rows. StoreError where nothing is published;
    LakeError where gold no longer has the version that is.
    """
    store = open_store(address)
    try:
        state = store.view(view.name)
        if state is None or not state.is_whole:
            expected = f"`tidemill publish {lake.pipeline.pipeline}`"
            raise StoreError(f"nothing is published of {view.name}", expected=expected)
        sampled = _sampled(lake, view, state, sample)
        gold = sampled.rows(_gold(sampled))
        keys = [tuple(row) for row in zip(*_columns(sampled.keys, view), strict=True)]
        on_step(f"{len(keys):,} keys of {view.name}, gold version {state.gold_version}")
        comparison, skipped = Comparison(), dict[str, str]()
        places = {name: place for place, name in enumerate(state.features)}
        answers = zip(keys, store.read(state, keys), strict=True)
        stored = {key: row.values for key, row in answers if row is not None}
        comparison.compare_rows("store", places, state.empty, keys, gold, stored)
    finally:
        store.close()
    approximate = {column.name for column in view.shown if column.off}
    exact_places = {name: place for name, place in places.items() if name not in approximate}
    if approximate:
        skipped["recompute"] = f"approximate: {', '.join(sorted(approximate))}"
    on_step("recompute")
    again = sampled.rows(_recomputed(sampled))
    comparison.compare_rows("recompute", exact_places, state.empty, keys, gold, again)
    on_step("training set")
    trained = _trained(sampled, clock)
    if trained is None:
        skipped["training"] = "gold was refreshed again at the same as_of, or has no answer then"
    else:
        comparison.compare_rows("training", places, state.empty, keys, gold, trained)
    if responses is not None:
        on_step("response log")
        _compare_responses(sampled, responses, sample, comparison, skipped)
    return _facts(sampled, len(keys), comparison, skipped)


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal; a NaN is equal to a NaN."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)


def _sampled(lake: Lake, view: FeatureView, state: PublishedView, sample: int) -> _Sampled:
    """Return the keys of the buckets and of gold whose hash comes first: deleted ones too."""
    commits = lake.commits(lake.tables.of(view).gold.name, None)
    commit = next((c for c in commits if c.version == state.gold_version), None)
    layout = [column.name for column in view.shown]
    if commit is None or commit.ledger is None or layout != list(state.features):
        raise LakeError(
            f"gold no longer tells of version {state.gold_version}, which the store has",
            where=lake.tables.of(view).gold.name,
            expected=f"`tidemill publish {lake.pipeline.pipeline}`, then the audit",
        )
    buckets = lake.spark.table(lake.tables.of(view).buckets.name).select(*view.keys)
    gold = lake.spark.table(lake.tables.of(view).gold.name).select(*view.keys)
    day = F.lit(state.as_of.toordinal())
    drawn = buckets.union(gold).distinct().orderBy(F.xxhash64(*view.keys, day)).limit(sample)
    keys = lake.spark.createDataFrame(drawn.toArrow())
    return _Sampled(lake, view, state, commit, keys)


def _columns(keys: DataFrame, view: FeatureView) -> list[list[Any]]:
    return [column.to_pylist() for column in keys.select(*view.keys).toArrow().columns]


def _gold(sampled: _Sampled) -> DataFrame:
    name = sampled.lake.tables.of(sampled.view).gold.name
    return Relation(name, sampled.state.gold_version).frame(sampled.lake.spark)


def _recomputed(sampled: _Sampled) -> DataFrame:
    fields: Mapping[str, Any] = sampled.commit.ledger or {}
    values = {"as_of": ledger.instant(fields["as_of"]), "batch": int(fields["batch"])}
    return ask(sampled.lake.spark, statement("features", sampled.view), values)


def _trained(sampled: _Sampled, clock: Clock) -> dict[Key, list[Any]] | None:
    """Return what a training set has of the keys at the version's own time; None where another
    version has that time, or it is not known."""
    lake, view = sampled.lake, sampled.view
    time = _time_of(sampled)
    if time is None:
        return None
    spine = sampled.keys.withColumn("audited_at", F.timestamp_micros(F.lit(micros_of(time))))
    wanted = Wanted([(lake, view)], clock, "served", "audited_at", "null")
    rows = training_set(spine, wanted).rows
    if rows.where(F.size(OUTSIDE) > 0).limit(1).count():
        return None
    return sampled.rows(rows)


def _time_of(sampled: _Sampled) -> datetime | None:
    """Return since when the version is the answer; None where a later one is since then too."""
    commit, lake = sampled.commit, sampled.lake
    if lake.pipeline.clock == "wall":
        return commit.at
    as_of = (commit.ledger or {})["as_of"]
    table = lake.tables.of(sampled.view).gold.name
    later = (c for c in lake.commits(table, None) if c.version > commit.version and c.ledger)
    if any((c.ledger or {})["as_of"] == as_of for c in later):
        return None
    return ledger.instant(as_of)


def _compare_responses(
    sampled: _Sampled,
    responses: Path,
    sample: int,
    comparison: Comparison,
    skipped: dict[str, str],
) -> None:
    """Compare answered rows with gold's history, each at the version that it was answered from."""
    found = logged_answers.read(responses, sampled.view, sample)
    expected = logged_answers.expected(sampled.lake, sampled.view, found.answers)
    empty = dict(zip(sampled.state.features, sampled.state.empty, strict=True))
    unknown = 0
    for place, one in enumerate(found.answers):
        if place not in expected:
            unknown += 1
            continue
        wanted = expected[place]
        said = logged_answers.as_json({**empty, **(wanted or {})})
        for name, value in one.values.items():
            comparison.compare(
                "responses", name, one.key, (said.get(name), wanted is not None), (value, one.found)
            )
    if unknown or found.ahead:
        skipped["responses"] = (
            f"{unknown} answered from versions that are not known any more, "
            f"{found.ahead} while a publish was under way"
        )


def _facts(
    sampled: _Sampled, keys: int, comparison: Comparison, skipped: Mapping[str, str]
) -> dict[str, Any]:
    tallies = comparison.tallies.values()
    sources: dict[str, dict[str, Any]] = {}
    for tally in tallies:
        of_source = sources.setdefault(tally.source, {"source": tally.source, "features": []})
        rates = {
            name: getattr(tally, name) / tally.compared for name in ("mismatch", "missing", "extra")
        }
        of_source["features"].append(
            {"feature": tally.feature, "compared": tally.compared, **rates}
        )
    return {
        "view": sampled.view.name,
        "gold_version": sampled.state.gold_version,
        "as_of": iso(sampled.state.as_of),
        "keys": keys,
        "compared": sum(tally.compared for tally in tallies),
        "different": sum(tally.different for tally in tallies),
        "sources": list(sources.values()),
        "examples": [{**vars(one), "key": list(one.key)} for one in comparison.examples],
        "skipped": dict(skipped),
    }
