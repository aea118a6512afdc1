"""A lake that version 0.1 made goes on: its tables, ledgers and checkpoints are read as they are.

`kept/lake-0.1.tar.xz` holds one with what it was fed: two runs of `tidemill run engagement --once`
over a file each, then `tidemill maintain`, by the last commit of 0.1.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from command_line import call
from lakes import Event, at
from runs import Small, check_whole, of_files, reading, records_of, run_once, write_file

KEPT = Path(__file__).parent / "kept" / "lake-0.1.tar.xz"
MADE_OF = "/tmp/old/input"  # its folder of files, as its land checkpoint has it
EVENTS: list[Event] = [
    ("a1", "p1", "g", "view", at("10:00")),
    ("a2", "p1", "g", "view", at("11:30")),
    ("a3", "p1", "h", "select", at("11:30:59.9")),
    ("a4", "p2", "g", "highlight", at("20T23:30")),
    ("a5", "p2", "g", "view", at("20T11:30")),
    ("b1", "p1", "g", "view", at("11:40")),
    (None, "p3", "h", "select", at("11:41")),
]
RECORDS = len(EVENTS) + 4  # two are refused, two are duplicates
NEW: list[Event] = [
    ("c1", "p1", "g", "view", at("11:50")),
    ("a1", "p1", "g", "view", at("10:00")),
    ("c2", "p9", "h", "highlight", at("11:52")),
]


@pytest.fixture
def old(tmp_path: Path) -> Small:
    with tarfile.open(KEPT) as archive:
        if hasattr(tarfile, "data_filter"):  # Python 3.10.12, 3.11.4 and later have it
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(tmp_path)
    root, files = tmp_path / "lake", tmp_path / "input"
    for path in (root / "_checkpoints" / "engagement_land").rglob("*"):
        if path.is_file() and not path.name.endswith(".crc"):
            path.write_text(path.read_text().replace(MADE_OF, str(files)))
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return Small(root, files, EVENTS, [""] * RECORDS, {})


@pytest.mark.stream
def test_it_is_read_and_goes_on(old: Small, spark: SparkSession) -> None:
    check_whole(reading(spark, old.root), old.records, EVENTS)
    for against in ("buckets", "events"):
        answer = call("reconcile", "engagement", "--root", old.root, "--from", against, "--json")
        assert (answer.code, answer.json["different"]) == (0, 0), answer
    before = reading(spark, old.root).ledgers()[0]

    write_file(old.input, "3.jsonl", records_of(NEW))
    rows = run_once(old.root, of_files(old.input))
    assert [(row.query, row.batch) for row in rows] == [("land", 2), ("clean", 2), ("feature", 2)]
    lake = reading(spark, old.root)
    check_whole(lake, [*old.records, "", "", ""], [*EVENTS, NEW[0], NEW[2]])
    newest = lake.ledgers()[0]
    assert (newest["refresh"], newest["from_batch"]) == (before["refresh"] + 1, before["batch"])
    assert (newest["mode"], newest["changed"]) == ("incremental", 2)
    assert not run_once(old.root, of_files(old.input)), "nothing new: nothing is written"
    assert call("plan", "engagement", "--root", old.root, "--json").code == 0
