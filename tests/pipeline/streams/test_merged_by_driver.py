"""Tables of streams merged by the driver: rows, feed and ledgers as by Spark's MERGE, in each
partition, and when it is Spark's after all."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from deltalog import by_driver, change_feed
from lakes import at
from stream_lakes import Event, StreamLake, declared
from tidemill.lake import times
from tidemill.lake.commits import data_files, folder_merge
from tidemill.pipeline.row_writes import driver_merge
from tidemill.pipeline.steps import stream_step
from tidemill.pipeline.streams import keyed_merge, session_engines

SESSIONS = {"keys": ["item"], "gap": "30m", "watermark": "10m", "page": "kind"}
TOTALS = {
    "keys": ["item"],
    "length": "10m",
    "watermark": "10m",
    "compute": {"events": "count"},
    "partition": "item",
}
BOTH = declared([{"name": "visits", "sessions": SESSIONS}, {"name": "counts", "totals": TOTALS}])


def folder_of(lake: StreamLake, name: str) -> Path:
    assert lake.lake.place.folder
    return lake.lake.place.folder / name


def step(lake: StreamLake, *events: Event) -> None:
    lake.feed(*events)
    new = lake.lake.spark.table("shop_events").where(F.col("batch") == lake.batch)
    stream_step.stateless_batch(new, lake.batch, lake=lake.lake, name="visits")


def rows_of(spark: SparkSession, folder: Path) -> list[str]:
    return sorted(str(row) for row in spark.read.format("delta").load(str(folder)).collect())


def merges_of(lake: StreamLake) -> list[tuple[Any, ...]]:
    """The MERGEs into the sessions: ledgers without what differs by lake and run, and counts."""
    counted = [f"numTargetRows{what}" for what in ("Inserted", "Updated", "Deleted")]
    return [
        (
            {k: v for k, v in one.ledger.items() if k not in ("seconds", "generation")},
            *(one.metric(name) for name in counted),
        )
        for one in lake.lake.commits("visits", None)
        if one.operation == "MERGE" and one.ledger
    ]


def test_sessions_are_those_of_sparks_merge(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over two midnights, so in several partitions; sessions are joined, so some go."""
    choose = random.Random(11)
    lakes = [StreamLake.new(spark, tmp_path / name, BOTH) for name in ("driver", "spark")]
    folders = [folder_of(lake, "visits") for lake in lakes]
    deleted = 0
    for _ in range(4):
        new: list[Event] = [
            (
                choose.choice(["home", "cart"]),
                choose.choice("ab"),
                at("20T20:00") + timedelta(minutes=choose.randrange(30 * 60)),
            )
            for _ in range(24)
        ]
        for lake, most in zip(lakes, (driver_merge.MOST_VALUES, 0), strict=True):
            with monkeypatch.context() as patched:
                patched.setattr(driver_merge, "MOST_VALUES", most)
                patched.setattr(session_engines, "MOST_EVENTS", most)
                lake.lake = lake.reopened(BOTH).lake  # one session knows the tables of one lake
                step(lake, *new)
        assert [by_driver(folder_of(lake, "visits")) for lake in lakes] == [True, False]
        assert rows_of(spark, folders[0]) == rows_of(spark, folders[1])
        deleted += merges_of(lakes[0])[0][3] or 0
    assert deleted, "none was joined"
    assert merges_of(lakes[0]) == merges_of(lakes[1])
    assert change_feed(spark, folders[0]) == change_feed(spark, folders[1])
    application = lakes[0].lake.app_id(lakes[0].lake.tables.streams["visits"])
    table = DeltaTable(str(folders[0]))
    assert table.transaction_version(application) == lakes[0].batch
    paths = data_files.rows(table, folders[0]).to_table(columns=["path"])["path"].to_pylist()
    assert all(paths) and len(paths) == len(rows_of(spark, folders[0]))


TYPED = {
    "schema": {
        "item": "string",
        "user": "string?",
        "number": "bigint?",
        "price": "decimal(18, 2)?",
        "is_new": "boolean?",
        "share": "double?",
    },
    "keys": ["item"],
    "name": "items",
    "event_time": "at",
    "features": [{"count": {}, "over": ["1h"]}],
}
VALUES: dict[str, list[Any]] = {
    "user": ["", "a", "A", "ä", "a\u0308", "'\"`", "\u0000", "😀", None],
    "number": [0, -1, 2**62, -(2**63), None],
    "price": [0, -0.01, 12345678901234.5, None],
    "is_new": [True, False, None],
    "share": [0.0, -0.0, 0.1, 1e300, None],
}


@pytest.mark.parametrize("key", VALUES)
def test_keys_of_any_type(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """Sessions of odd keys, by the driver and by Spark; a double is Spark's in both."""
    choose, found, by_spark = random.Random(5), [], []
    real = session_engines.in_spark
    monkeypatch.setattr(
        session_engines, "in_spark", lambda *words: by_spark.append(most) or real(*words)
    )
    words = {"keys": [key], "gap": "30m", "watermark": "10m", "page": "item"}
    declaration = declared([{"name": "visits", "sessions": words}], views=[TYPED])
    batches = [
        [
            {
                "item": choose.choice("xy"),
                **{name: choose.choice(values) for name, values in VALUES.items()},
                "at": (at("20T08:00") + timedelta(minutes=choose.randrange(600))).isoformat(),
            }
            for _ in range(40)
        ]
        for _ in range(2)
    ]
    for name, most in (("driver", session_engines.MOST_EVENTS), ("spark", 0)):
        monkeypatch.setattr(session_engines, "MOST_EVENTS", most)
        lake = StreamLake.new(spark, tmp_path / name, declaration)
        for batch in batches:
            lake.feed_records(*map(json.dumps, batch))
            new = spark.table("shop_events").where(F.col("batch") == lake.batch)
            stream_step.stateless_batch(new, lake.batch, lake=lake.lake, name="visits")
        found.append(rows_of(spark, folder_of(lake, "visits")))
    assert {most > 0 for most in by_spark} == ({True, False} if key == "share" else {False})
    assert found[0] == found[1] and len(found[0]) > len(VALUES[key])


def bring(lake: StreamLake, batch: int, *rows: tuple[str | None, datetime, int, bool]) -> None:
    """Bring totals of ten minutes into their table: item, start, events, and whether they go."""
    table = lake.lake.tables.streams["counts"]
    columns = "item STRING, window_start TIMESTAMP, window_end TIMESTAMP, events BIGINT"
    made = lake.lake.spark.createDataFrame(
        [(item, at, at + timedelta(minutes=10), events, gone) for item, at, events, gone in rows],
        f"{columns}, {keyed_merge.GONE} BOOLEAN",
    ).withColumn("window_day", F.to_date("window_start"))
    keyed_merge.bring(made, batch, lake.lake, table, ["item"], "window_start", started=0.0)


def counts(lake: StreamLake, engine: str = "spark") -> list[tuple[Any, ...]]:
    rows = [(r["item"], r["window_start"], r["events"], r["batch"]) for r in _rows(lake, engine)]
    return sorted(rows, key=str)


def _rows(lake: StreamLake, engine: str) -> Sequence[Any]:
    if engine == "spark":
        return times.collect(lake.lake.spark.table("counts"))
    folder = folder_of(lake, "counts")
    return data_files.rows(DeltaTable(str(folder)), folder).to_table().to_pylist()


def test_partitions_of_any_name(spark: SparkSession, tmp_path: Path) -> None:
    """Only plain names are the driver's: `deltalake` writes a path with a space that Spark cannot
    read."""
    lake, start = StreamLake.new(spark, tmp_path / "lake", BOTH), at("10:00")
    plain, other = ["a", "B-2", "c_3.d"], ["a/b", "a%2Fb", "c=d e", "x:y?#", "ünï", "'q\"", " "]
    bring(lake, 0, *((name, start, 1, False) for name in plain))
    assert by_driver(folder_of(lake, "counts"))
    for batch, name in enumerate([*other, "", "a\n"], 1):
        bring(lake, batch, (name, start, batch, False))
        assert not by_driver(folder_of(lake, "counts")), name
    bring(lake, 20, *((name, start, 2, False) for name in [*plain, *other]))
    assert not by_driver(folder_of(lake, "counts"))
    bring(lake, 21, *((name, start, 3, False) for name in plain))
    assert by_driver(folder_of(lake, "counts"))
    expected = [(name, start, 3, 21) for name in plain]
    expected += [(name, start, 2, 20) for name in other]
    expected += [(None, start, 8, 8), ("a\n", start, 9, 9)]
    assert counts(lake) == counts(lake, "arrow") == sorted(expected, key=str)


def test_a_null_key_is_sparks(spark: SparkSession, tmp_path: Path) -> None:
    lake, start = StreamLake.new(spark, tmp_path / "lake", BOTH), at("10:00")
    bring(lake, 0, ("a", start, 1, False), (None, start, 1, False))
    assert not by_driver(folder_of(lake, "counts"))
    bring(lake, 1, ("a", start, 2, False))
    assert by_driver(folder_of(lake, "counts"))
    bring(lake, 2, (None, start, 3, False))
    assert not by_driver(folder_of(lake, "counts"))
    assert counts(lake) == [("a", start, 2, 1), (None, start, 3, 2)]


def test_rows_that_go_and_are_not_there_leave_their_ledger(
    spark: SparkSession, tmp_path: Path
) -> None:
    """`deltalake` makes no commit where no row changes; Spark's has the batch."""
    lake, start = StreamLake.new(spark, tmp_path / "lake", BOTH), at("10:00")
    bring(lake, 0, ("a", start, 1, False))
    bring(lake, 1, ("b", start, 1, True))
    (newest,) = lake.lake.commits("counts", 1)
    assert newest.ledger and newest.ledger["batch"] == 1
    bring(lake, 2, ("a", start, 1, True), ("b", start, 4, False))
    assert by_driver(folder_of(lake, "counts")) and counts(lake) == [("b", start, 4, 2)]
    bring(lake, 2, ("a", start, 9, False))  # the table has the number
    assert counts(lake) == [("b", start, 4, 2)]


def test_a_list_that_has_statistics_is_sparks(spark: SparkSession, tmp_path: Path) -> None:
    """`deltalake` counts an empty list as a null there."""
    lake = StreamLake.new(spark, tmp_path / "lake", BOTH)
    folder, types = folder_of(lake, "visits"), lake.lake.metadata("visits").types
    assert folder_merge.suits(folder, types, 1 << 20, ("session_day",))
    assert not folder_merge.suits(folder, types, 1 << 20), "of other partitions than declared"
    spark.sql("ALTER TABLE visits UNSET TBLPROPERTIES ('delta.dataSkippingStatsColumns')")
    first = "then of the first columns"
    assert not folder_merge.suits(folder, types, 1 << 20, ("session_day",)), first
