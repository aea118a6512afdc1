"""How the files of a table are written: what a reader of them can skip."""

from __future__ import annotations

from pathlib import Path

import psutil
import pyarrow.parquet as pq

from lakes import Lakes, TestLake, at
from tidemill.lake.catalog import prepare_root


def _root(lake: TestLake) -> Path:
    root = lake.lake.place.root
    assert root
    return root


def test_the_rows_of_a_bucket_file_are_in_the_order_of_time(lakes: Lakes) -> None:
    lake = lakes.new()
    events = [(f"e{m}", f"p{m % 7}", "g", "view", at(f"10:{m * 37 % 60:02}")) for m in range(60)]
    lake.feed(events)
    files = sorted((_root(lake) / "engagement_buckets").glob("bucket_hour=*/*.parquet"))
    assert files
    for path in files:
        starts = pq.ParquetFile(path).read(["bucket_start"]).column(0).to_pylist()
        assert starts == sorted(starts)


def test_times_in_files_have_statistics(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.feed([("e", "p", "g", "view", at("10:00")), ("f", "p", "g", "view", at("10:07"))])
    (path,) = (_root(lake) / "engagement_buckets").glob("bucket_hour=*/*.parquet")
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    statistics = columns["bucket_start"].statistics
    assert (statistics.min, statistics.max) == (at("10:00"), at("10:07"))


def test_no_file_has_a_checksum_file_beside_it(lakes: Lakes) -> None:
    """Each of those costs Hadoop some processes of their own, and Delta's logs are safe without."""
    lake = lakes.fed([("e", "p", "g", "view", at("10:00"))])
    lake.feed([("f", "p", "g", "view", at("10:01"))])
    assert not [path for path in _root(lake).rglob(".*.crc")]


def test_a_commit_starts_no_program(lakes: Lakes) -> None:
    """Hadoop sets modes by `chmod` and asks for links by `readlink`, unless it is kept from it."""
    lake = lakes.fed([("e", "p", "g", "view", at("10:00"))])
    before = _faults_of_programs()
    lake.feed([("f", "p", "g", "view", at("10:01"))])
    assert _faults_of_programs() == before


def _faults_of_programs() -> int:
    """The page faults of all programs that the JVM has started and seen the end of."""
    (jvm,) = [child for child in psutil.Process().children() if child.name() == "java"]
    fields = Path(f"/proc/{jvm.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[8])


def test_another_session_s_checksum_of_the_last_checkpoint_is_removed(lakes: Lakes) -> None:
    """That file is written again and again: the checksum would be wrong from the next time on."""
    lake = lakes.new()
    log = _root(lake) / "engagement_features" / "_delta_log"
    beside = log / "._last_checkpoint.crc"
    beside.write_bytes(b"crc")
    prepare_root(lake.lake.place)
    assert not beside.exists() and (log / f"{0:020}.json").exists()
