"""What `tidemill_batches` tells of each batch, and lakes that were made before it told so much."""

from __future__ import annotations

import os
import pty
import sys
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from children import Children
from command_line import call
from lakes import NOW, Lakes, at, payload
from runs import Small, opened, records_of, write_file
from tidemill.config import dataflow
from tidemill.config.settings import Place
from tidemill.lake import batches, discovery
from tidemill.lake.append import digest, digest_of_all
from tidemill.lake.batches import BatchRow, Flow
from tidemill.lake.catalog import Lake, register
from tidemill.lake.open import open_for_reading, open_for_writing
from tidemill.lake.schema.creation import create
from tidemill.monitoring.status import Watched
from tidemill.pipeline import batch_log, runner
from tidemill.pipeline.observer import Callback
from tidemill.pipeline.queries import Pipeline, Trigger
from tidemill.pipeline.silver import lateness


def late_by(length: timedelta, event_id: str | None = None) -> str:
    return payload((event_id, "p", "g", "view", NOW - length))


def recorded(lake: Lake, query: str) -> dict:
    """The newest row of a query, as the table holds it."""
    batch_log.record(lake)
    rows = lake.spark.table("tidemill_batches").where(f"query = '{query}'").orderBy("version")
    return rows.collect()[-1].asDict()


def _waiting(flow: Flow) -> list[int]:
    """The rows that wait for clean, and for feature."""
    return [batches.waiting(flow, dataflow.by_checkpoint(name)) for name in ("clean", "feature")]


# -- clean ---------------------------------------------------------------------------------------


def test_clean_tells_refusals_by_reason_and_lateness_by_class(lakes: Lakes) -> None:
    #   12:00 is now     ahead  10 s  11 s  1 h   8 d, twice under one id
    #   late                0    10    11  3600   691,200
    lake = lakes.new()
    lake.clean(
        [
            late_by(-timedelta(minutes=1)),
            late_by(timedelta(seconds=10)),
            late_by(timedelta(seconds=11)),
            late_by(timedelta(hours=1)),
            late_by(timedelta(days=8), "twice"),
            late_by(timedelta(days=8), "twice"),
            "{bad",
            '{"gti": ""}',
            '{"gti": "", "profile_id": "p", "event_type": "view"}',
        ]
    )
    row = recorded(lake.lake, "clean")
    assert (row["events"], row["accepted"], row["quarantined"], row["duplicates"]) == (9, 5, 3, 1)
    assert row["refused"] == {
        "malformed": 1,
        "empty:gti": 2,
        "missing:event_timestamp": 2,
        "missing:event_type": 1,
        "missing:profile_id": 1,
    }
    assert row["late"] == {"10": 2, "60": 1, "3600": 1, "more": 1}
    assert (row["late_seconds"], row["late_most"]) == (10 + 11 + 3600 + 691_200, 691_200)
    quarantine = lake.lake.tables.quarantine
    counted = lake.table("quarantine").agg(digest(quarantine)).collect()[0][0]
    assert lake.ledgers("quarantine")[0]["digest"] == counted


def test_a_batch_of_nothing_but_refused_records(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.clean(["{bad", "{worse"])
    row = recorded(lake.lake, "clean")
    assert (row["refused"], row["late"], row["late_most"]) == ({"malformed": 2}, {}, 0)


def test_digests_of_parts_make_the_digest_of_all() -> None:
    assert digest_of_all([]) == "0:0"
    assert digest_of_all(["2:FF", "1:F"]) == "3:F0"


def test_classes_of_lateness() -> None:
    late = lateness.together([{"10": 6, "3600": 3}, {"3600": 1}])
    assert (lateness.at_most(late, 0.5), lateness.at_most(late, 0.95)) == (10, 3600)
    assert lateness.at_most({"more": 1}, 0.5) is None
    assert lateness.at_most({}, 0.5) is None


# -- how far it tells ----------------------------------------------------------------------------


def test_the_newest_append_says_how_far_it_tells(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the next start needs no query for it; what the rows say is the same."""
    lake = lakes.fed([(None, "a", "g", "view", at("10:00"))])
    batch_log.record(lake.lake)
    by_rows = batch_log.recorded_since(lake.lake, date(1970, 1, 1))
    monkeypatch.setattr(batch_log, "recorded_since", lambda *_: pytest.fail("a query was made"))
    assert batch_log.recorded(lake.lake) == by_rows
    assert max(by_rows.values()) > 0


def test_rows_that_somebody_removed_are_told_again(lakes: Lakes) -> None:
    lake = lakes.fed([(None, "a", "g", "view", at("10:00"))])
    batch_log.record(lake.lake)
    rows = lake.spark.table("tidemill_batches").count()
    lake.spark.sql("DELETE FROM tidemill_batches")
    assert max(batch_log.recorded(lake.lake).values()) == -1
    batch_log.record(lake.lake)
    assert lake.spark.table("tidemill_batches").count() == rows


def test_rows_beside_the_ledgers_say_nothing_of_them(lakes: Lakes) -> None:
    lake = lakes.fed([(None, "a", "g", "view", at("10:00"))])
    batch_log.record(lake.lake)
    before = batch_log.recorded(lake.lake)
    row = BatchRow("maintenance", "", 0, NOW, 0)
    batch_log.append(lake.lake, [row])
    assert batch_log.recorded(lake.lake) == before


# -- gold ----------------------------------------------------------------------------------------


def test_a_refresh_tells_merged_rows_and_freshness(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.feed([(None, key, "g", "view", at("10:00")) for key in ("a", "b", "c")])
    lake.feed([(None, key, "g", "view", at("10:01")) for key in ("a", "d")])
    row = recorded(lake.lake, "feature")
    assert row["merged"] == {"inserted": 1, "updated": 1, "deleted": 0, "copied": 2}
    assert row["freshness"] == round((row["committed_at"] - row["as_of"]).total_seconds())


# -- backlog -------------------------------------------------------------------------------------


def flow_of(root: Path) -> Flow:
    """The pipeline of a folder, found without Spark."""
    (found,) = discovery.flows(discovery.Folder(root), Place(root))
    assert (found.pipeline, found.views) == ("engagement", ("engagement",))
    return found


@pytest.mark.stream
def test_backlog_is_what_the_next_query_has_not_read(small: Small, tmp_path: Path) -> None:
    mine = small.copy_all(tmp_path)
    more = records_of([("n1", "p9", "g", "view", at("11:40"))], ["{}"])
    write_file(mine.input, "2.jsonl", more)
    flow = flow_of(mine.root)
    assert _waiting(flow) == [0, 0]
    told: list[BatchRow] = []
    with opened(mine.root, mine.definition) as pipeline:
        pipeline.claim()
        recorder, stop = runner.Recorder(pipeline, [Callback(told.extend)]), runner.Stop()
        runner.finish("land", pipeline, stop, recorder)
        assert _waiting(flow) == [2, 0]
        runner.finish("clean", pipeline, stop, recorder)
        assert _waiting(flow) == [0, 1]
        runner.finish("feature", pipeline, stop, recorder)
        assert _waiting(flow) == [0, 0]
    assert [(row.query, row.backlog) for row in told] == [
        ("land", None),
        ("clean", 0),
        ("feature", 0),
    ]


@pytest.mark.stream
def test_a_query_with_nothing_to_read_is_not_started(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the source may know more than the logs; maintenance of bronze is a version to read."""
    mine = small.copy_all(tmp_path)
    started: list[str] = []
    start = Pipeline.start

    def noted(pipeline: Pipeline, name: str, trigger: Trigger) -> StreamingQuery:
        started.append(name)
        return start(pipeline, name, trigger)

    monkeypatch.setattr(Pipeline, "start", noted)
    with opened(mine.root, mine.definition) as pipeline:
        runner.run_once(pipeline, runner.Stop())
        assert started == ["land"]
        pipeline.lake.spark.sql("ALTER TABLE engagement_bronze SET TBLPROPERTIES (a = 'b')")
        runner.run_once(pipeline, runner.Stop())
        assert started == ["land", "land", "clean"]


# -- lakes of an earlier version -----------------------------------------------------------------


def test_an_older_lake_opens_and_gets_the_new_columns(lakes: Lakes, spark: SparkSession) -> None:
    lake = lakes.new()
    now = lake.lake.tables.batches
    before = replace(now, columns=tuple(c for c in now.columns if not c.added))
    place, pipeline = lake.lake.place, lake.lake.pipeline
    create(lake.lake, before, replace=True)
    assert len(spark.table(now.name).columns) < len(now.columns)

    open_for_reading(spark, place, pipeline)
    assert spark.table(now.name).columns == before.column_names

    again = open_for_writing(spark, place, pipeline)
    assert spark.table(now.name).columns == now.column_names
    version = again.commits(now.name, 1)[0].version
    open_for_writing(spark, place, pipeline)
    assert again.commits(now.name, 1)[0].version == version
    lake.clean(["{bad"])
    assert recorded(again, "clean")["refused"] == {"malformed": 1}


# -- top -----------------------------------------------------------------------------------------


def test_top_shows_a_lake_as_it_stands(small: Small) -> None:
    found = call("top", "--root", small.root, "--json").json
    assert (found["at"], found["lake"], found["writer"]) == (
        "2026-11-21T12:00:00Z",
        str(small.root),
        None,
    )
    (pipeline,) = found["pipelines"]
    land, clean, feature = pipeline["queries"]
    assert (land["query"], land["batch"], land["events"]) == ("land", 0, 8)
    assert (clean["events"], clean["backlog"], clean["refused"]["malformed"]) == (8, 0, 1)
    assert (feature["view"], feature["backlog"], feature["keys_changed"]) == ("engagement", 0, 3)
    assert (feature["as_of"], feature["freshness_seconds"]) == ("2026-11-21T11:31:00Z", 29 * 60)
    assert set(feature["seconds"]) == {"append", "diff", "merge"}
    printed = call("top", "--once", "--root", small.root)
    assert printed.code == 0
    assert "feature engagement" in printed.out
    assert "gold is 29m 0s old" in printed.out
    assert "malformed 1" in printed.out


def test_top_reads_on_from_its_last_frame(small: Small) -> None:
    watched = Watched(flow_of(small.root))
    watched.look(NOW)
    before = {who: len(rows) for who, rows in watched.rows.items()}
    watched.look(NOW)
    assert {who: len(rows) for who, rows in watched.rows.items()} == before
    assert set(before) == {("land", None), ("clean", None), ("feature", "engagement")}


def test_a_catalog_is_watched_alike(small: Small, spark: SparkSession) -> None:
    """Through queries on the session's schema, as where the tables are in a catalog; a commit's
    time is then its file's, a moment after the one that it tells."""
    moments = ("committed_at", "age_seconds")
    place = Place(small.root)
    register(spark, place)
    (flow,) = discovery.flows(discovery.Schema(spark), place)
    alike = []
    for watched in (Watched(flow), Watched(flow_of(small.root))):
        watched.look(NOW)
        alike.append([{**q, **dict.fromkeys(moments)} for q in watched.queries(NOW)])
    assert alike[0] == alike[1]


def test_top_of_an_empty_lake(lakes: Lakes) -> None:
    root = lakes.new().lake.place.root
    queries = call("top", "--root", root, "--json").json["pipelines"][0]["queries"]
    assert [(query["query"], query["batch"]) for query in queries] == [
        ("land", None),
        ("clean", None),
        ("feature", None),
    ]
    assert "never" in call("top", "--once", "--root", root).out


def test_top_ends_with_q(small: Small) -> None:
    """On a terminal of its own, with no Spark."""
    words = [sys.executable, "-m", "tidemill.cli", "top", "--root", str(small.root)]
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, words, {**os.environ, "TERM": "xterm", "COLUMNS": "150"})
    shown = b""
    while b"feature engagement" not in shown:
        shown += os.read(terminal, 65_536)
    os.write(terminal, b"q")
    while _read(terminal):
        continue
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how Linux tells that the other end is closed
        return b""


def test_top_of_a_folder_starts_no_spark(small: Small, children: Children) -> None:
    code = (
        "import sys; sys.argv = ['tidemill', 'top', '--json', '--root', sys.argv[1]]\n"
        "from pyspark.sql import SparkSession\n"
        "SparkSession.Builder.getOrCreate = None\n"
        "from tidemill import cli; cli.main()"
    )
    child = children.python("-c", code, small.root)
    assert child.ended() == 0, child.err.read_text()
