"""`tidemill.open_lake`: what a notebook, a job and a test ask of a lake."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

import oracle
import tidemill
from lakes import NOW, Event, at, payload
from runs import Small, of_files, write_file
from tidemill.config.settings import iso
from tidemill.errors import LakeError, LockedError, TidemillError, UsageError

GOLD = "engagement_features"
CLOCK = tidemill.Clock(NOW)


def opened(root: Path, **words: object) -> tidemill.Lake:
    return tidemill.open_lake(root, clock=CLOCK, **words)


@pytest.fixture(scope="module")
def lake(small: Small) -> tidemill.Lake:
    return opened(small.root)


def values(rows: object) -> dict:
    """Gold's rows that are not empty, as the oracle has them."""
    found = {(r.profile_id, r.gti): {n: r[n] for n in oracle.COLUMNS} for r in rows.collect()}
    return {key: row for key, row in found.items() if any(row.values())}


@pytest.fixture(scope="module")
def past(small: Small, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[Event]]]:
    """A lake refreshed to 11:00, then 11:30 twice (the second brings a late event), then 11:45."""
    folder = tmp_path_factory.mktemp("past")
    batches = [
        [("e1", "p1", "g", "view", at("10:10")), ("e2", "p1", "g", "view", at("10:59:30"))],
        [("e3", "p1", "h", "select", at("11:29:10"))],
        [("e4", "p1", "g", "view", at("10:30"))],
        [("e5", "p2", "g", "view", at("11:44:10"))],
    ]
    definition = of_files(folder / "input")
    for number, events in enumerate(batches):
        write_file(folder / "input", f"{number}.jsonl", map(payload, events), age=9 - number)
        with opened(folder / "lake", pipeline=definition, write=True) as lake:
            lake.run_once()
    return folder / "lake", batches


def test_tables_and_questions_are_rows(lake: tidemill.Lake, small: Small) -> None:
    assert values(lake.table(GOLD)) == oracle.features(small.events, oracle.as_of(small.events))
    assert lake.table(GOLD, version=0).count() == 0
    assert lake.sql(f"SELECT gti FROM {GOLD} WHERE gti = :gti", {"gti": "h"}).count() == 1
    assert "views_1h" in lake.query("top_titles").columns
    answer = lake.answer("SELECT TIMESTAMP '2026-11-21T10:00:00Z' AS time, 1.50 AS price")
    assert answer["columns"] == ["time", "price"]
    assert answer["rows"][0][0] == "2026-11-21T10:00:00Z"
    assert lake.spark.catalog.currentDatabase().startswith("lake_")
    assert lake.place.root == small.root


def test_values_have_a_zone(lake: tidemill.Lake) -> None:
    counted = "SELECT count(*) AS n FROM engagement_buckets WHERE bucket_start < :time"
    assert lake.sql(counted, {"time": at("11:00")}).first()["n"] == 3
    with pytest.raises(ValueError, match="has no zone"):
        lake.sql(counted, {"time": datetime(2026, 11, 21)})  # noqa: DTZ001


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (lambda lake: lake.table("engagement_feature"), "did you mean 'engagement_features'"),
        (lambda lake: lake.sql("DELETE FROM engagement_features"), "does not only read"),
        (lambda lake: lake.sql("SELECT nothing FROM engagement_features"), "nothing"),
        (lambda lake: lake.query("trendin"), "did you mean 'trending'"),
        (lambda lake: lake.status("engagment"), "did you mean 'engagement'"),
        (lambda lake: lake.explain("engagement", profile_id="p1"), "has other keys"),
        (lambda lake: lake.explain("engagement", ["p1", "g"], feature="x"), "no feature 'x'"),
        (lambda lake: lake.explain("engagement", ["p1", "g"], at="2026-11-21T11:00"), "no zone"),
        (lambda lake: lake.reconcile("engagement", source="event"), "did you mean 'events'"),
        (lambda lake: lake.report("page.html"), "names no pipeline"),
        (lambda lake: lake.plan(), "names no pipeline"),
    ],
)
def test_what_is_not_there_is_refused(lake: tidemill.Lake, asked: object, found: str) -> None:
    with pytest.raises(TidemillError, match=found) as refused:
        asked(lake)  # type: ignore[operator]
    assert isinstance(refused.value, UsageError)


def test_how_a_view_stands(lake: tidemill.Lake, small: Small) -> None:
    status = lake.status("engagement")
    as_of = oracle.as_of(small.events)
    assert (status.view, status.as_of, status.batch) == ("engagement", as_of, 0)
    assert status.age_seconds == (NOW - as_of).total_seconds()
    assert status.recompute_reason is None
    (only,) = lake.history("engagement")
    assert (only.version, only.as_of, only.batch) == (status.gold_version, as_of, 0)
    assert only.ledger["mode"] == "recompute"
    assert int(only.metrics["numTargetRowsInserted"]) == lake.table(GOLD).count()
    told = lake.describe("engagement")
    assert (told["gold_version"], told["as_of"]) == (status.gold_version, iso(as_of))
    assert lake.view("engagement").keys == ("profile_id", "gti")


def test_a_key_is_explained_by_name_or_in_order(lake: tidemill.Lake) -> None:
    by_name = lake.explain("engagement", gti="g", profile_id="p1", feature="view_count_1h")
    assert by_name == lake.explain("engagement", ["p1", "g"], feature="view_count_1h")
    assert by_name == lake.explain(
        "engagement", {"profile_id": "p1", "gti": "g"}, feature="view_count_1h"
    )
    assert [one["value"] for one in by_name["features"]] == [1]
    earlier = lake.explain("engagement", ["p1", "g"], at="2026-11-21T12:00:00+01:00")
    assert (earlier["recomputed"], earlier["as_of"]) == (True, "2026-11-21T11:00:00Z")


def test_gold_is_compared(lake: tidemill.Lake) -> None:
    found = lake.reconcile("engagement")
    assert (found["different"], found["keys"] > 0) == (0, True)
    version = lake.status("engagement").gold_version
    assert lake.reconcile("engagement", version) == found
    assert lake.reconcile("engagement", source="events")["from"] == "events"


def test_tables_are_read_without_spark(lake: tidemill.Lake) -> None:
    files = lake.duckdb(GOLD)
    assert files.execute(f"SELECT count(*) FROM {GOLD}").fetchone() == (lake.table(GOLD).count(),)
    version = lake.status("engagement").gold_version
    assert lake.changes(GOLD, version).num_rows == lake.table(GOLD).count()
    frames = lake.frames()
    assert next(frames)["pipelines"][0]["pipeline"] == "engagement"
    assert next(frames)["lake"] == str(lake.place)


def test_refused_records(lake: tidemill.Lake, small: Small, tmp_path: Path) -> None:
    named = opened(small.root, pipeline="engagement")
    told = named.quarantine.summary()
    refused = [row["record_id"] for row in named.quarantine.records().collect()]
    assert told["records"] == len(refused) == told["open"]
    assert named.quarantine.record(refused[0])["record_id"] == refused[0]
    assert named.quarantine.export(tmp_path / "open.jsonl") == len(refused)
    assert named.quarantine.summary(since=NOW + timedelta(days=1))["records"] == 0
    with pytest.raises(UsageError, match="has no zone"):
        named.quarantine.summary(since="2026-11-21")


# -- gold as of a time ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "batches", "as_of"),
    [
        ("11:00", 1, "11:00"),  # 11:00    11:30    11:30    11:45
        ("11:29", 1, "11:00"),  #   ├─ here ─┤
        ("11:30", 3, "11:30"),  #            ├──── the last of two
        ("11:44:59", 3, "11:30"),
        ("11:45", 4, "11:45"),
    ],
)
def test_gold_as_of_a_time(
    past: tuple[Path, list[list[Event]]], time: str, batches: int, as_of: str
) -> None:
    root, events = past
    lake = opened(root)
    known = [event for batch in events[:batches] for event in batch]
    rows = lake.features("engagement", at=at(time))
    assert values(rows) == oracle.features(known, at(as_of))
    as_text = lake.features("engagement", at=at(time).isoformat())
    assert values(as_text) == values(rows)
    elsewhere = at(time).astimezone(timezone(timedelta(hours=-5)))
    assert values(lake.features("engagement", at=elsewhere)) == values(rows)


def test_gold_without_a_time_is_as_it_stands(past: tuple[Path, list[list[Event]]]) -> None:
    root, events = past
    known = [event for batch in events for event in batch]
    assert values(opened(root).features("engagement")) == oracle.features(known, at("11:45"))


@pytest.mark.parametrize(
    ("time", "found"),
    [
        (at("10:59:59.9"), r"before the first refresh.*2026-11-21T11:00:00Z or later"),
        (at("11:45:00.1"), r"after the newest as_of.*2026-11-21T11:45:00Z or earlier"),
        (at("11:30").replace(tzinfo=None), "has no zone"),
        ("2026-11-21T11:30:00", "has no zone"),
        ("2026-11-21", "has no zone"),
        ("noon", "is no time"),
        (11, "is no time"),
    ],
)
def test_times_that_history_cannot_have(
    past: tuple[Path, list[list[Event]]], time: object, found: str
) -> None:
    with pytest.raises(UsageError, match=found):
        opened(past[0]).features("engagement", at=time)


def test_a_lake_that_was_never_refreshed(empty_lake: Path) -> None:
    with pytest.raises(UsageError, match="was never refreshed"):
        opened(empty_lake).features("engagement", at=at("11:00"))


def removed_files(lake: tidemill.Lake, version: int) -> None:
    """Delete what VACUUM would: the files that only an old version names."""
    old = set(lake.table(GOLD, version).inputFiles()) - set(lake.table(GOLD).inputFiles())
    assert old
    for file in old:
        Path(unquote(urlparse(file).path)).unlink()


def test_files_that_vacuum_deleted(
    past: tuple[Path, list[list[Event]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = opened(shutil.copytree(past[0], tmp_path / "lake"))
    first = lake.history("engagement")[-1]
    removed_files(lake, first.version)
    with pytest.raises(LakeError, match=f"version {first.version}.*VACUUM") as refused:
        lake.features("engagement", at=first.as_of)
    assert refused.value.where == GOLD
    assert values(lake.features("engagement", at=at("11:45")))
    # a catalog's files are not looked for but read
    monkeypatch.setattr(type(lake.place), "folder", None)
    with pytest.raises(LakeError, match=f"version {first.version}.*VACUUM"):
        lake.features("engagement", at=first.as_of)
    assert values(lake.features("engagement", at=at("11:45")))


def test_a_log_that_was_cleaned(past: tuple[Path, list[list[Event]]], tmp_path: Path) -> None:
    lake = opened(shutil.copytree(past[0], tmp_path / "lake"))
    *_, first = lake.history("engagement")
    log = tmp_path / "lake" / GOLD / "_delta_log"
    for _ in range(2):
        lake.spark.sql(f"ALTER TABLE {GOLD} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    assert list(log.glob("*.checkpoint*.parquet"))
    for version in range(first.version + 1):
        (log / f"{version:020}.json").unlink()
    assert lake.history("engagement")[-1].version == first.version + 1
    with pytest.raises(LakeError, match=r"history of 2026-11-21T11:00:00Z is gone.*11:30:00Z"):
        lake.features("engagement", at=first.as_of)


def test_the_latest_as_of_counts_not_the_newest_version(
    past: tuple[Path, list[list[Event]]], tmp_path: Path
) -> None:
    """as_of  21T11:45   22T11:00   22T10:30
    version       4          5          6       at 22T10:29 it is 4, and 22T11:00 is no more."""
    root, events = past
    shutil.copytree(root, tmp_path / "lake")
    known = [event for batch in events for event in batch]
    with opened(tmp_path / "lake", pipeline="engagement", write=True) as lake:
        for time in ("22T11:00", "22T10:30"):
            (done,) = lake.refresh(as_of=at(time))
            assert done["as_of"] == f"2026-11-{time}:00Z"
        before = lake.features("engagement", at=at("22T10:29"))
        assert values(before) == oracle.features(known, at("11:45"))
        now = lake.features("engagement", at=at("22T10:30"))
        assert values(now) == oracle.features(known, at("22T10:30"))
        with pytest.raises(UsageError, match="after the newest as_of"):
            lake.features("engagement", at=at("22T11:00"))


# -- writing --------------------------------------------------------------------------------------


def test_one_who_reads_cannot_write(small: Small) -> None:
    reader = opened(small.root, pipeline="engagement")
    for write in (reader.run_once, reader.run, reader.refresh, reader.maintain):
        with reader, pytest.raises(UsageError, match="the lake only reads"):
            write()
    with pytest.raises(UsageError, match="the lake only reads"):
        reader.rebuild("bronze")
    with pytest.raises(UsageError, match="the lake only reads"):
        reader.reconcile("engagement", repair=True)
    with pytest.raises(UsageError, match="the lake only reads"):
        reader.quarantine.replay(ids=["r1"])
    writer = opened(small.root, pipeline="engagement", write=True)
    with pytest.raises(UsageError, match="with statement is missing"):
        writer.refresh()


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="does not exist"):
        opened(tmp_path / "none")
    with pytest.raises(LakeError, match="does not exist"):
        opened(tmp_path / "none", pipeline="engagement", write=True, create=False)
    with pytest.raises(UsageError, match="names no pipeline"):
        opened(tmp_path / "none", write=True)
    with pytest.raises(UsageError, match="takes both"):
        opened(tmp_path, catalog="main")
    assert not (tmp_path / "none").exists()


def test_a_writer_holds_the_lake(small: Small, tmp_path: Path) -> None:
    root = small.copy(tmp_path / "lake")
    words = {"pipeline": small.definition, "write": True, "wait": 0}
    with opened(root, **words) as lake:
        with pytest.raises(LockedError, match="for engagement"), opened(root, **words):
            pytest.fail("held twice")
        with pytest.raises(UsageError, match="held already"), lake:
            pytest.fail("held twice")
        assert lake.status("engagement").batch == 0
    with opened(root, **words, command="mine") as lake:
        assert "mine" in (root / "_tidemill.lock").read_text()


def test_a_lake_is_run_refreshed_maintained_and_rebuilt(small: Small, tmp_path: Path) -> None:
    one = small.copy_all(tmp_path)
    late: Event = ("late", "p9", "g", "view", at("11:31"))
    write_file(one.input, "2.jsonl", [payload(late)])
    told: list[object] = []
    with opened(one.root, pipeline=one.definition, write=True) as lake:
        lake.check_run(once=True)
        totals = lake.run_once(on_batch=told.extend)
        assert (totals["events"], totals["accepted"]) == (1, 1)
        assert {row.query for row in told} >= {"clean", "feature"}
        (done,) = lake.refresh(as_of=at("11:50"))
        assert (done["view"], done["as_of"]) == ("engagement", "2026-11-21T11:50:00Z")
        planned = [(step["table"], step["action"]) for step in lake.maintain(dry_run=True)]
        assert [(step["table"], step["action"]) for step in lake.maintain()] == planned
        assert lake.plan()[0]["kind"] == "none"
        assert lake.reconcile("engagement", repair=True)["repaired"] == 0
        rebuilt = lake.rebuild(keys=[{"profile_id": "p9", "gti": "g"}])
        assert rebuilt["buckets"] == 1
        with pytest.raises(UsageError, match="a rebuild is of one thing, found nothing"):
            lake.rebuild()
        assert lake.rebuild("bronze")["generation"]
        events = [*one.events, late]
        assert values(lake.features("engagement")) == oracle.features(events, oracle.as_of(events))


# -- the package ----------------------------------------------------------------------------------


def test_the_package_alone_starts_nothing() -> None:
    words = "import sys, tidemill; print('pyspark' in sys.modules, 'typer' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True)
    assert answer.stdout.split() == ["False", "False"], answer.stderr
