"""What a folder's log says of a table without a query is what Spark says of it."""

from __future__ import annotations

from pathlib import Path

from deltalake import write_deltalake

from lakes import Lakes, TestLake, at
from tidemill.lake.commits import checksum
from tidemill.lake.commits.metadata import Detail


def _by_query(lake: TestLake, table: str) -> Detail:
    row = lake.spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]
    return Detail(row["id"], row["numFiles"], row["sizeInBytes"])


def test_every_table_s_detail(lakes: Lakes) -> None:
    lake = lakes.fed([("e", "p", "g", "view", at("10:00"))])
    lake.feed([("f", "p", "g", "view", at("10:01"))])
    names = [table.name for table in lake.lake.existing_tables()]
    assert len(names) >= 6
    for name in names:
        assert lake.lake.detail(name) == _by_query(lake, name), name


def test_a_version_of_another_writer_has_none_and_spark_is_asked(lakes: Lakes) -> None:
    lake = lakes.fed([("e", "p", "g", "view", at("10:00"))])
    root = lake.lake.place.folder
    assert root is not None
    path = root / "engagement_events"
    rows = lake.spark.table("engagement_events").toArrow()
    write_deltalake(str(path), rows, mode="append")
    assert checksum.detail(path / "_delta_log", 2) is None
    lake.spark.catalog.refreshTable("engagement_events")
    assert lake.lake.detail("engagement_events") == _by_query(lake, "engagement_events")


def test_a_broken_checksum_says_nothing(tmp_path: Path) -> None:
    for text in ("", "{", "[]", "{}", '{"metadata": {}, "numFiles": 1}'):
        (tmp_path / f"{0:020}.crc").write_text(text)
        assert checksum.detail(tmp_path, 0) is None
        assert checksum.size(tmp_path, 0) is None
