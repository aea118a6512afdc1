"""A source whose schema changes: nothing stops, no byte is lost, and an alarm says which field."""

from __future__ import annotations

import bz2
import gzip
import json
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import oracle
import runs
from command_line import call
from dimension_lakes import DimensionLake, declared
from lakes import NOW, Event, at, payload
from tidemill.config.settings import Clock, Place
from tidemill.lake import batches, discovery
from tidemill.lake.batches import BatchRow
from tidemill.monitoring.prometheus import Exporter
from tidemill.monitoring.schema_alarms import SchemaAlarms

EVENTS: list[Event] = [(f"e{n}", "p", "g", "view", at(f"10:0{n}")) for n in range(3)]
METRIC = "tidemill_schema_fault_timestamp_seconds"


def changed(event: Event, **fields: object) -> str:
    return json.dumps(
        {k: v for k, v in {**json.loads(payload(event)), **fields}.items() if v != ""}
    )


@pytest.mark.stream
def test_fields_that_come_change_and_go(spark: SparkSession, tmp_path: Path) -> None:
    """1st file (.gz)   as declared, and one with a new field
    2nd file (.bz2)  `gti` a number, twice; `profile_id` gone; and one as declared"""
    folder, root = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    first = [payload(EVENTS[0]), changed(EVENTS[1], device={"é": [1]})]
    second = [changed(EVENTS[2], gti=7), '{ "gti" :8 }', changed(EVENTS[2], profile_id="")]
    second.append(payload(EVENTS[2]))
    for name, lines, pack in (
        ("1.jsonl.gz", first, gzip.compress),
        ("2.json.bz2", second, bz2.compress),
    ):
        (folder / name).write_bytes(pack("".join(f"{line}\n" for line in lines).encode()))
        runs.run_once(root, runs.of_files(folder))
    lake = runs.reading(spark, root)
    landed = [row.raw_payload for row in lake.table("bronze").collect()]
    assert sorted(landed) == sorted([*first, *second])
    assert lake.gold() == oracle.features(EVENTS, oracle.as_of(EVENTS))
    reasons = {row.raw_payload: row.reasons for row in lake.table("quarantine").collect()}
    assert reasons[second[0]] == ["wrong_type:gti"]
    assert reasons[second[2]] == ["missing:profile_id"]
    assert set(reasons) == set(second[:3])

    (shown,) = call("top", "--once", "--root", root, "--json").json["pipelines"]
    alarms = {(a["fault"], a["field"]): a for a in shown["alarms"]}
    assert alarms["wrong_type", "gti"]["records"] == 2
    assert alarms["wrong_type", "gti"]["expected"] == "string"
    assert alarms["missing", "profile_id"]["records"] == 2
    assert {a["query"] for a in shown["alarms"]} == {"clean"}
    assert "the schema has changed: wrong_type:gti, expected string" in (
        call("top", "--once", "--root", root).out
    )


def test_a_dimension_s_changed_field(spark: SparkSession, tmp_path: Path) -> None:
    lake = DimensionLake.new(spark, tmp_path / "lake", declared())
    row = {"customer_id": 7, "segment": "gold"}
    source = {"lsn": 1, "ts_ms": 1}
    lake.change([json.dumps({"op": "c", "after": row, "source": source})])
    (told,) = lake.ledgers("customer_dimension")
    assert told["expected"]["customer_id"] == "string"
    (flow,) = discovery.flows(discovery.Folder(tmp_path / "lake"), Place(tmp_path / "lake"))
    alarms = SchemaAlarms()
    alarms.take(batches.since(flow, dict.fromkeys(flow.told_by, -1)))
    (alarm,) = (a for a in alarms.alarms if a[2] == "customer_id")
    assert alarm[1] == "customer"


def refusing(minutes: int, records: int = 1, **more: str) -> BatchRow:
    said = {"refused": {"wrong_type:gti": records, "malformed": 9}, "expected": {"gti": "string"}}
    return BatchRow("clean", "g", 0, NOW + timedelta(minutes=minutes), 1, **{**said, **more})


def test_an_alarm_goes_on_until_an_hour_has_no_such_record() -> None:
    #   minute   0    50    ...    109 110   200
    #            2     3            on  off   new, 1
    alarms = SchemaAlarms()
    alarms.take([refusing(0, 2), refusing(50, 3)])
    for minute, on in ((109, True), (110, False)):
        assert bool([*alarms.at(NOW + timedelta(minutes=minute))]) is on
    (alarm,) = alarms.at(NOW + timedelta(minutes=60))
    assert (alarm["records"], alarm["since"]) == (5, "2026-11-21T12:00:00Z")
    alarms.take([refusing(200)])
    (alarm,) = alarms.at(NOW + timedelta(minutes=200))
    assert (alarm["records"], alarm["since"]) == (1, "2026-11-21T15:20:00Z")


def test_prometheus_is_told_when_a_field_was_refused_last() -> None:
    exporter = Exporter("engagement", Clock(NOW))
    exporter.on_batch([refusing(0), refusing(5)])
    labels = {"query": "clean", "view": "", "field": "gti", "fault": "wrong_type"}
    labels |= {"pipeline": "engagement", "expected": "string"}
    newest = (NOW + timedelta(minutes=5)).timestamp()
    assert exporter.registry.get_sample_value(METRIC, labels) == newest
