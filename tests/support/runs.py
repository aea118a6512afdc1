"""Whole runs in this process, over files in a folder, and what the tables say after them."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

import deltalog
import oracle
from lakes import NOW, Event, TestLake, payload
from tidemill.config.pipeline_file import PipelineDefinition, load
from tidemill.config.settings import Clock, Place
from tidemill.lake.batches import BatchRow
from tidemill.lake.open import open_for_reading
from tidemill.pipeline import runner
from tidemill.pipeline.connection import (
    Opening,
    checked_source,
    held_pipeline,
    writing_session,
)
from tidemill.pipeline.observer import Callback
from tidemill.pipeline.queries import Pipeline

STREAM_TABLES = ("bronze", "quarantine", "events", "buckets", "features")


def write_file(folder: Path, name: str, records: Iterable[str], *, age: int = 0) -> Path:
    """A file of JSON lines, put there whole, `age` seconds old: land takes the oldest first."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("".join(f"{record}\n" for record in records))
    modified = NOW.timestamp() - age
    os.utime(path, (modified, modified))
    return path


def of_files(folder: Path, pipeline: str = "engagement") -> PipelineDefinition:
    return load(pipeline).overridden({"source": {"kind": "files", "input": str(folder)}})


@contextmanager
def opened(root: Path, definition: PipelineDefinition) -> Iterator[Pipeline]:
    """The pipeline, open and locked, in the session that is there."""
    opening = Opening(Place(root), Clock(NOW), wait=30)
    source = checked_source(opening, definition, once=True)
    with writing_session(opening, "tests") as spark:
        yield held_pipeline(spark, opening, definition, source)


def run_once(root: Path, definition: PipelineDefinition) -> list[BatchRow]:
    with opened(root, definition) as pipeline:
        rows: list[BatchRow] = []
        runner.run_once(pipeline, runner.Stop(), [Callback(rows.extend)])
        return rows


def reading(spark: SparkSession, root: Path, pipeline: str = "engagement") -> TestLake:
    """The lake as it stands; nothing is made and nothing locked."""
    return TestLake(open_for_reading(spark, Place(root), load(pipeline)), Clock(NOW))


def versions(root: Path) -> dict[str, int]:
    """The newest version of each table that the three queries write."""
    return {name: deltalog.newest(root / f"engagement_{name}") for name in STREAM_TABLES}


@dataclass(frozen=True)
class Small:
    """A lake that one `tidemill run --once` made of one file; copies of it may be changed."""

    root: Path
    input: Path
    events: Sequence[Event]
    records: Sequence[str]
    summary: dict[str, object]

    @property
    def definition(self) -> PipelineDefinition:
        return of_files(self.input)

    def copy(self, root: Path) -> Path:
        """The same lake in another folder, with the same input."""
        return shutil.copytree(self.root, root)

    def copy_all(self, folder: Path, called: str = "input") -> Small:
        """The same lake with an input of its own; its land checkpoint knows the new folder."""
        root, files = folder / "lake", folder / called
        shutil.copytree(self.root, root)
        shutil.copytree(self.input, files)
        for path in (root / "_checkpoints" / "engagement_land").rglob("*"):
            if path.is_file() and not path.name.endswith(".crc"):
                text = path.read_text().replace(str(self.input), str(files))
                path.write_text(text)
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        return Small(root, files, self.events, self.records, self.summary)


def records_of(events: Iterable[Event], refused: Iterable[str] = ()) -> list[str]:
    return [*map(payload, events), *refused]


def check_whole(lake: TestLake, records: Sequence[str], events: Sequence[Event]) -> None:
    """Fail unless every record is accounted for once, and gold is what the events say."""
    assert lake.gold() == oracle.features(events, oracle.as_of(events))
    assert lake.different() == 0
    check_accounts(lake, len(records))
    check_buckets(lake, events)


def check_accounts(lake: TestLake, records: int) -> None:
    """events = accepted + quarantined + duplicates, in each batch and over all of them."""
    told = living(lake, "events")
    for batch in told:
        parts = batch["accepted"] + batch["quarantined"] + batch["duplicates"]
        assert batch["events"] == parts, json.dumps(batch)
    assert_once(batch["batch"] for batch in told)
    assert sum(batch["events"] for batch in told) == records
    assert sum(batch["accepted"] for batch in told) == lake.table("events").count()
    assert sum(batch["quarantined"] for batch in told) == lake.table("quarantine").count()


def living(lake: TestLake, table: str) -> list[dict]:
    """The ledgers of the lake's own generation: a rebuild leaves older ones in the history."""
    return [told for told in lake.ledgers(table) if told["generation"] == lake.lake.generation]


def check_buckets(lake: TestLake, events: Iterable[Event]) -> None:
    """Each minute's events are counted once, whatever batch brought them."""
    rows = lake.table("buckets").collect()
    assert_once((r.profile_id, r.gti, r.bucket_start, r.batch) for r in rows)
    assert_once(batch["batch"] for batch in living(lake, "buckets"))
    found: Counter[tuple] = Counter()
    for row in lake.spark.table("engagement_minute_counts").collect():
        minute = row["bucket_minute"].astimezone(NOW.tzinfo)
        found[row["profile_id"], row["gti"], row["event_type"], minute] += row["count"]
    assert +found == oracle.buckets(events)


def assert_once(items: Iterable[object]) -> None:
    twice = {item: n for item, n in Counter(items).items() if n > 1}
    assert not twice, f"more than once: {twice}"
