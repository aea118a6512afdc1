"""The demo: a day of made-up events through the whole pipeline, live, in a new folder."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import Row
from pyspark.sql import functions as F

from tidemill import lake as lakes
from tidemill import tables
from tidemill.errors import LakeError
from tidemill.features import FeatureView
from tidemill.features.definition import PipelineDefinition, load
from tidemill.lake import Lake
from tidemill.metrics import BatchRow
from tidemill.opening import Opening, open_lake
from tidemill.pipeline import Pipeline
from tidemill.running import Stop, run, summary
from tidemill.session import INTERPRETED
from tidemill.settings import iso
from tidemill.showing import Show
from tidemill.sources.events import Mix
from tidemill.sources.generator import Generator

BATCHES = 12
PACE = 6.0  # seconds between releases of events: a stream, not a pile
TRIGGER = "1s"
MIX = Mix(profiles=300, titles=20)


def demonstrate(
    opening: Opening, *, minutes: int, rate: int, start: datetime | None, seed: int, show: Show
) -> dict[str, Any]:
    """Run the demo and show it; yield the totals of `run`, with the root and the start."""
    _refuse_lake(opening)
    opening = replace(opening, spark_conf=INTERPRETED)
    definition = load("engagement").overridden(
        {"triggers": dict.fromkeys(("land", "clean", "feature"), TRIGGER)}
    )
    first = start or _current_hour(opening) - timedelta(minutes=minutes)
    source = Generator(
        start=first,
        seed=seed,
        rate=rate,
        minutes=minutes,
        minutes_per_batch=math.ceil(minutes / BATCHES),
        seconds_per_batch=PACE,
        mix=MIX,
        now=opening.clock.at,
    )
    source.check(once=True)
    _introduce(show, opening, source)
    began, stop = time.monotonic(), Stop()
    with open_lake(opening, definition, "tidemill demo") as lake:
        source = replace(source, made_at=time.time())  # the first events are released now
        pipeline = Pipeline(lake, source, opening.clock, "event")
        with stop.on_signals():
            rows = run(pipeline, stop, show.batches, until=lambda r: _drained(r, source))
        found = summary(pipeline, rows, time.monotonic() - began)
        _show_results(show, lake, definition, found)
    return {**found, "root": str(opening.place), "start": iso(first)}


def _refuse_lake(opening: Opening) -> None:
    root = opening.place.root
    if root and (root / lakes.MARKER).exists():
        raise LakeError(
            "already holds a lake", where=str(root), expected="a new folder: --root DIR"
        )


def _current_hour(opening: Opening) -> datetime:
    return opening.clock.now().replace(minute=0, second=0, microsecond=0)


def _introduce(show: Show, opening: Opening, source: Generator) -> None:
    hours = (source.minutes or 0) / 60
    show.say(
        f"[bold]Tidemill demo[/bold]: {hours:g} hours of events from {iso(source.first)}, "
        f"about {source.rate} a minute, into {opening.place}"
    )
    show.say("[dim]starting Spark (a few seconds) ...[/dim]")


def _drained(rows: Sequence[BatchRow], source: Generator) -> bool:
    """Tell whether everything that the source has went through all three queries."""

    def total(query: str, name: str) -> int:
        return sum(row.counts.get(name, 0) for row in rows if row.query == query)

    return (
        total("land", "events") >= source.total
        and total("clean", "events") == total("land", "events")
        and total("feature", "events") == total("clean", "accepted")
    )


def _show_results(
    show: Show, lake: Lake, definition: PipelineDefinition, found: dict[str, Any]
) -> None:
    view = definition.views[0]
    show.summary(found)
    gold = lake.spark.table(tables.features(view).name)
    day = [c.name for c in view.columns if c.window == view.horizon]
    top = gold.orderBy(*(F.desc(name) for name in reversed(day)), *view.keys).limit(5).collect()
    if not top:
        return
    windows = list(dict.fromkeys(column.window.text for column in view.columns))
    show.say(f"\n[bold]{tables.features(view).name}[/bold], the most viewed: {' / '.join(windows)}")
    columns = [*view.keys, *(partial.name for partial in view.partials)]
    show.table(columns, [_compact(row, view, windows) for row in top])
    show.say("")
    _plot(show, lake, view, [top[0][key] for key in view.keys])
    _what_next(show, lake)


def _compact(row: Row, view: FeatureView, windows: Sequence[str]) -> list[str]:
    """Yield a row of gold with the windows of each partial in one cell."""
    cells = [" / ".join(f"{row[f'{p.name}_{w}']:,}" for w in windows) for p in view.partials]
    return [*(str(row[key]) for key in view.keys), *cells]


def _plot(show: Show, lake: Lake, view: FeatureView, key: Sequence[Any]) -> None:
    """Plot one key's features over gold's versions, from its change data feed."""
    name = tables.features(view).name
    reader = lake.spark.read.option("readChangeFeed", "true").option("startingVersion", 0)
    feed = reader.table(name).where(F.col("_change_type").isin("insert", "update_postimage"))
    for column, value in zip(view.keys, key, strict=True):
        feed = feed.where(F.col(column) == value)
    states = feed.orderBy("_commit_version").collect()
    if states:
        series = {c.name: [int(state[c.name]) for state in states] for c in view.columns}
        times = [state["updated_at"] for state in states]
        show.plot(f"{' / '.join(map(str, key))} over {len(states)} changes", series, times)


def _what_next(show: Show, lake: Lake) -> None:
    root = lake.place
    show.say("\n[bold]Try next[/bold]")
    show.say(f"  tidemill reconcile engagement --root {root}      is every feature right?")
    show.say(f'  tidemill query "SELECT * FROM engagement_status" --root {root}')
    show.say(f"  tidemill run engagement --root {root} --once     nothing new: nothing changes")
    show.say("  tidemill sql features --view engagement          the statement behind the features")
