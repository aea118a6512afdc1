"""The demo: a day of synthetic events through the whole pipeline, live, in a new folder."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import Row
from pyspark.sql import functions as F

from tidemill.cli.output.display import Show
from tidemill.config.dataflow import QUERIES
from tidemill.config.pipeline_file import PipelineDefinition, load
from tidemill.config.publishing import Publishing
from tidemill.config.settings import Clock, Place, iso
from tidemill.errors import LakeError
from tidemill.features import FeatureView
from tidemill.lake import catalog as lakes
from tidemill.lake import times
from tidemill.lake.batches import BatchRow
from tidemill.lake.catalog import Lake
from tidemill.lake.session.session import SMALL_DATA
from tidemill.online import publish as publishing
from tidemill.online.store_address import FILE_NAME
from tidemill.pipeline import publication
from tidemill.pipeline.connection import Opening, open_lake
from tidemill.pipeline.observer import Callback, Observer
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.runner import Stop, run
from tidemill.sources.generator.mix import Mix
from tidemill.sources.generator.source import Generator

BATCHES = 12
IN_FLIGHT = 2  # batches: one in feature while the next one is in land or clean
TRIGGER = "1s"
MIX = Mix(profiles=300, titles=20)


def opening_of(root: Path, memory: str | None, verbose: bool) -> Opening:
    """Return how to open the demo's lake, for data that are small."""
    place, clock = Place.resolve(root), Clock.from_environment()
    return Opening(place, clock, 0.0, memory, verbose, SMALL_DATA)


def demonstrate(
    opening: Opening, *, minutes: int, rate: int, start: datetime | None, seed: int, show: Show
) -> dict[str, Any]:
    """Run the demo and show it; return the totals of `run`, with the root and the start."""
    _refuse_lake(opening)
    definition = load("engagement").overridden(
        {"triggers": dict.fromkeys([query.name for query in QUERIES], TRIGGER)}
    )
    first = start or _current_hour(opening) - timedelta(minutes=minutes)
    source = Generator(
        start=first,
        seed=seed,
        rate=rate,
        minutes=minutes,
        minutes_per_batch=math.ceil(minutes / BATCHES),
        mix=MIX,
        now=opening.clock.at,
    )
    source.check(once=True)
    introduce(show, opening.place, source)
    began, stop = time.monotonic(), Stop()
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-") as folder,
        open_lake(opening, definition, "tidemill demo") as lake,
    ):
        source = replace(source, released_in=str(Path(folder) / "minutes"))
        pipeline = Pipeline(lake, source, opening.clock, "event")
        with stop.on_signals():
            totals = run(pipeline, stop, [Callback(show.batches), Tide(source)])
        summary = totals.summary(pipeline, time.monotonic() - began)
        _show_results(show, lake, definition, summary)
    return {**summary, "root": str(opening.place), "start": iso(first)}


def _refuse_lake(opening: Opening) -> None:
    root = opening.place.root
    if root and (root / lakes.MARKER).exists():
        raise LakeError(
            "already holds a lake", where=str(root), expected="a new folder: --root DIR"
        )


def _current_hour(opening: Opening) -> datetime:
    return opening.clock.now().replace(minute=0, second=0, microsecond=0)


def introduce(show: Show, place: Place, source: Generator) -> None:
    """Say what is about to happen, and where."""
    hours = (source.minutes or 0) / 60
    events = f"{hours:g} hours of synthetic events, about {source.rate:,} a minute"
    show.say(("Tidemill demo", "bold"), f": {events}, from {iso(source.first)}")
    show.say(f"into {place}")
    show.say(("starting Spark (a few seconds) ...", "dim"))


@dataclass
class Tide(Observer):
    """Lets the source's events come batch by batch, as fast as they go through: a stream, not a
    pile; it has enough when every event went through all three queries."""

    source: Generator
    released: int = 0
    rows: list[BatchRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Let the first batch come."""
        self._release()

    def on_batch(self, rows: Sequence[BatchRow]) -> None:
        """Let the next batch come when there is room for it."""
        self.rows += rows
        through = _through(self.rows)
        minutes = self.source.minutes or 0
        if self.released < minutes and through >= self._before(IN_FLIGHT - 1) and through:
            self._release()

    @property
    def has_enough(self) -> bool:
        """Whether every event went through."""
        return _through(self.rows) >= self.source.total

    def _before(self, batches: int) -> int:
        """Return how many records were released so many batches ago."""
        return self.source.before(max(0, self.released - batches * self.source.minutes_per_batch))

    def _release(self) -> None:
        self.released += self.source.minutes_per_batch
        self.source.release(self.released)


def _through(rows: Sequence[BatchRow]) -> int:
    """Return how many records went through all three queries, given what the batches told."""
    left = sum(row.counts.get("events", 0) for row in rows if row.query == "feature")
    records = 0
    for row in rows:
        if row.query == "clean":
            left -= row.counts["accepted"]
            if left < 0:
                break
            records += row.counts["events"]
    return records


def _show_results(
    show: Show, lake: Lake, definition: PipelineDefinition, summary: dict[str, Any]
) -> None:
    view = definition.views[0]
    show.summary(summary)
    gold = lake.spark.table(lake.tables.of(view).gold.name)
    day = [c.name for c in view.columns if c.window.reach == view.horizon]
    top = gold.orderBy(*(F.desc(name) for name in reversed(day)), *view.keys).limit(5).collect()
    if not top:
        return
    show_features(show, view, lake.tables.of(view).gold.name, top)
    show.say()
    _publish(show, lake, view)
    _plot(show, lake, view, [top[0][key] for key in view.keys])
    show_next(show, lake.place)


def show_features(show: Show, view: FeatureView, gold: str, rows: Sequence[Row]) -> None:
    """Show rows of gold, a table's name, as a table, the windows of each partial in one cell."""
    windows = list(dict.fromkeys(column.window.text for column in view.columns))
    show.say()
    show.say((gold, "bold"), f", the most viewed: {' / '.join(windows)}")
    columns = [*view.keys, *(partial.name for partial in view.partials)]
    show.table(columns, [_compact(row, view, windows) for row in rows])


def _publish(show: Show, lake: Lake, view: FeatureView) -> None:
    """Bring gold into the online store in the lake's folder; a lake in a catalog has none."""
    if lake.place.folder is None:
        return
    done = publishing.publish(lake, view, publication.address_of(lake, Publishing()))
    keys = f"{done.keys:,} keys in {done.seconds:.1f} s, into {FILE_NAME}"
    show.say(("published", "bold"), f" {keys} beside the tables")
    show.say()


def _compact(row: Row, view: FeatureView, windows: Sequence[str]) -> list[str]:
    cells = [" / ".join(f"{row[f'{p.name}_{w}']:,}" for w in windows) for p in view.partials]
    return [*(str(row[key]) for key in view.keys), *cells]


def _plot(show: Show, lake: Lake, view: FeatureView, key: Sequence[Any]) -> None:
    """Plot one key's features over gold's versions, from its change data feed."""
    name = lake.tables.of(view).gold.name
    reader = lake.spark.read.option("readChangeFeed", "true").option("startingVersion", 0)
    feed = reader.table(name).where(F.col("_change_type").isin("insert", "update_postimage"))
    for column, value in zip(view.keys, key, strict=True):
        feed = feed.where(F.col(column) == value)
    states = times.collect(feed.orderBy("_commit_version"))
    if states:
        series = {c.name: [int(state[c.name]) for state in states] for c in view.columns}
        updated = [state["updated_at"] for state in states]
        show.plot(f"{' / '.join(map(str, key))} over {len(states)} changes", series, updated)


def show_next(show: Show, root: Place) -> None:
    """Show commands to go on with, each below what it does."""
    show.say()
    show.say(("Try next", "bold"))
    for what, words in (
        ("is every feature right?", f"reconcile engagement --root {root}"),
        ("how fresh is it?", f'query "SELECT * FROM engagement_status" --root {root}'),
        ("nothing new: nothing changes", f"run engagement --root {root} --once"),
        ("the statement behind the features", "sql features --view engagement"),
        ("the features of a key over HTTP", f"serve --root {root}"),
        ("the lake in a browser", f"ui engagement --root {root}"),
    ):
        show.say((f"  {what}", "dim"))
        show.say(f"    tidemill {words}")
