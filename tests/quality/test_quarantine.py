"""Quarantine: what was refused, and repaired records sent through again, once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from command_line import Answer, call
from lakes import NOW, Event, Lakes, at
from runs import Small, check_whole, reading, run_once
from tidemill.config.quality_file import Rules
from tidemill.config.settings import Clock, Place
from tidemill.errors import InputError, UsageError
from tidemill.operations import replay
from tidemill.operations.rebuild import from_bronze
from tidemill.pipeline.connection import Opening
from tidemill.pipeline.silver import replays
from tidemill.pipeline.steps import clean_step
from tidemill.quality import quarantine as refusals

REPAIRED: list[Event] = [
    (None, "p7", "g", "view", at("11:00")),
    ("late", "p1", "g", "select", at("10:30")),
]
SET = ("profile_id=p7", "gti=g", "event_type=view", "event_timestamp=2026-11-21T11:00:00Z")


def quarantine(what: str, root: Path, *words: object) -> Answer:
    return call("quarantine", what, "engagement", *words, "--root", root, "--json")


def line(record_id: str, payload: object) -> str:
    return json.dumps({"record_id": record_id, "raw_payload": payload}) + "\n"


def test_repaired_records_come_through_once(
    small: Small, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = small.copy_all(tmp_path)
    root, file = half.root, tmp_path / "repaired.jsonl"
    found = quarantine("list", root, "--out", file).json
    assert (found["records"], found["open"], found["replayed"], found["written"]) == (2, 2, 0, 2)
    assert {reason["reason"]: reason["records"] for reason in found["reasons"]} == {
        "malformed": 1,
        **{f"missing:{n}": 1 for n in ("event_timestamp", "event_type", "gti", "profile_id")},
    }
    narrowed = ("--reason", "missing", "--since", "2026-11-21T00:00Z")
    assert quarantine("list", root, *narrowed).json["records"] == 1
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    ids = {tuple(one["reasons"]) == ("malformed",): one["record_id"] for one in lines}
    broken, empty = ids[True], ids[False]
    shown = quarantine("show", root, broken).json
    assert (shown["raw_payload"], shown["reasons"]) == ('{"event_id', ["malformed"])
    assert (shown["batch"], shown["replayed"], shown["replay_id"]) == (0, False, None)

    set_ = [word for text in SET for word in ("--set", text)]
    assert quarantine("replay", root, "--ids", broken, *set_).code == 2  # no object to set it in
    again = quarantine("replay", root, file)  # exported, not repaired
    assert (again.code, again.json["landed"], len(again.json["refused"])) == (1, 0, 2)

    # A crash between the two commits, one after both, and a call that ends.
    for point, code, replayed in (("marked", 3, False), ("landed", 3, True), ("", 0, True)):
        monkeypatch.setenv("TIDEMILL_FAIL_AT", point and f"replay.{point}")
        answer = quarantine("replay", root, "--ids", empty, *set_)
        assert answer.code == code, answer
        assert quarantine("show", root, empty).json["replayed"] is replayed
    assert (answer.json["landed"], answer.json["already"]) == (0, 1)
    event = {"event_id": "late", "profile_id": "p1", "gti": "g", "event_type": "select"}
    file.write_text(line(broken, {**event, "event_timestamp": "2026-11-21T10:30:00Z"}))
    assert quarantine("replay", root, file).json["landed"] == 1

    records = [*half.records, "", ""]
    events = [*half.events, *REPAIRED]
    run_once(root, half.definition)
    check_whole(reading(spark, root), records, events)
    assert quarantine("list", root).json["open"] == 0
    from_bronze.rebuild(Opening(Place(root), Clock(NOW)), half.definition, lambda rows: None)
    check_whole(reading(spark, root), records, events)


def test_an_export_is_written_part_by_part(
    lakes: Lakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of the ids, whatever the parts are."""
    made = lakes.new()
    made.clean([f"{{bad {number}" for number in range(25)], batch=0)
    monkeypatch.setattr(refusals, "EXPORTED", 4)
    file = tmp_path / "refused.jsonl"
    assert refusals.export(made.lake, file, None, None) == 25
    ids = [json.loads(text)["record_id"] for text in file.read_text().splitlines()]
    assert ids == sorted(ids) and len(set(ids)) == 25


def test_clean_reads_the_replays_of_its_own_days(lakes: Lakes) -> None:
    """Whatever was sent again on other days is in files that it skips."""
    made = lakes.new()
    long = {"profile_id": "p", "gti": "g" * 2000, "event_type": "view"}
    made.clean([json.dumps({**long, "event_timestamp": "2026-11-21T10:00"})], batch=0)
    repaired = {**long, "gti": "g", "event_timestamp": "2026-11-21T10:00"}
    replay.replay(made.lake, [replay.Repaired("r000001", json.dumps(repaired))], made.clock)
    name = made.lake.tables.replays.name
    for day in range(1, 4):
        other = (
            made.spark.table(name)
            .limit(1)
            .withColumn("ingest_date", F.date_add("ingest_date", -day))
        )
        other.write.format("delta").mode("append").saveAsTable(name)
    bronze = made.table("bronze")
    judged = replays.set_aside(
        bronze.withColumn("reasons", F.array().cast("array<string>")), made.lake
    )
    read = [file for file in judged.inputFiles() if f"/{name}/" in file]
    assert len(read) == 1 and len(made.spark.table(name).inputFiles()) >= 4


def test_an_original_that_would_pass_today_is_not_counted_beside_its_repair(lakes: Lakes) -> None:
    made = lakes.new()
    long = {
        "profile_id": "p",
        "gti": "g" * 2000,
        "event_type": "view",
        "event_timestamp": "2026-11-21T10:00",
    }
    made.clean([json.dumps(long)], batch=0)
    repaired = [replay.Repaired("r000001", json.dumps({**long, "gti": "g"}))]
    assert replay.replay(made.lake, repaired, made.clock)["landed"] == 1
    (landed,) = made.table("bronze").collect()
    (refused,) = made.table("quarantine").collect()
    assert landed["record_id"] == "replay:r000001"
    kept = [name for name in made.lake.tables.bronze.column_names if name != "record_id"]
    kept.remove("raw_payload")
    assert [landed[name] for name in kept] == [refused[name] for name in kept]

    lenient = made.lake.pipeline.overridden({"quality": Rules(longest=5000)})
    bronze = made.table("bronze")
    both = made.table("quarantine").select(*bronze.columns).union(bronze)
    clean_step.clean_batch(both, 1, lake=replace(made.lake, pipeline=lenient))
    assert [row["record_id"] for row in made.events().collect()] == ["replay:r000001"]
    again = made.table("quarantine").where("batch = 1").collect()
    assert [(row["record_id"], row["reasons"]) for row in again] == [("r000001", ["replayed"])]
    told = made.ledgers("events")[0]
    assert [told[n] for n in ("events", "accepted", "quarantined", "duplicates")] == [2, 1, 1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no JSON"),
        ("[]\n", "is no repaired record"),
        ('{"record_id": "a"}\n', "is no repaired record"),
        ('{"record_id": "a", "payload": "x"}\n', "is no repaired record"),
        ('{"record_id": "a", "raw_payload": 5}\n', "is no repaired record"),
        ('{"record_id": "a", "record_id": "b", "raw_payload": "x"}\n', "stands twice"),
        (line("a", "x") + line("a", "y"), "record 'a' stands twice"),
        ('{"record_id": "a", "raw_payload": {"n": 0.12345678901234567890}}', "to the digit"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "repaired.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        replay.from_file(path)


def test_a_payload_may_be_a_text_or_an_object(tmp_path: Path) -> None:
    path = tmp_path / "repaired.jsonl"
    path.write_text(line("a", '{"x":  1}') + "\n" + line("b", {"x": 1, "y": "ü"}))
    assert replay.from_file(path) == [
        replay.Repaired("a", '{"x":  1}'),
        replay.Repaired("b", '{"x": 1, "y": "ü"}'),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "a replay is of a file or of ids"),
        (("a.jsonl", "--ids", "a"), "a replay is of a file or of ids"),
        (("--ids", " , "), "names no record"),
        (("--ids", "a", "--set", "gti"), "'gti' sets nothing"),
        (("a.jsonl", "--set", "gti=g"), "--set goes with --ids"),
    ],
)
def test_a_replay_of_nothing(tmp_path: Path, words: tuple[Any, ...], message: str) -> None:
    answer = quarantine("replay", tmp_path, *words)
    assert answer.code == 2
    assert message in str(answer.error["message"])


def test_ids_and_fields_that_are_not_there(lakes: Lakes) -> None:
    made = lakes.new()
    with pytest.raises(UsageError, match="not in quarantine: x"):
        replay.by_ids(made.lake, ["x"], {})
    with pytest.raises(UsageError, match="unknown field 'gtj'; did you mean 'gti'"):
        replay.by_ids(made.lake, ["x"], {"gtj": "g"})
