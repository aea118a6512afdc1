from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession

from tidemill.errors import InputError
from tidemill.sources.files.source import Files, failing_file

WHEN = datetime(2026, 11, 21, 10, 5, 1, 123456, tzinfo=timezone.utc)
ISO = "2026-11-21T10:05:01.123456Z"
REQUIRED = {"profile_id": "string", "event_timestamp": "timestamp"}


def put(path: Path, content: str | bytes = "{}\n") -> Path:
    """Write the file whole, then move it to its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.part")
    beside.write_bytes(content.encode() if isinstance(content, str) else content)
    return beside.rename(path)


def put_parquet(path: Path, **columns: pa.Array) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def times(unit: str, zone: str | None = "UTC") -> pa.Array:
    return pa.array([WHEN if zone else WHEN.replace(tzinfo=None)], pa.timestamp(unit, zone))


def refused(files: Files, *, once: bool = True) -> InputError:
    with pytest.raises(InputError) as error:
        files.check(once=once)
    return error.value


def test_identity_is_the_absolute_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    here = Files(Path("in")).identity()
    assert here == {"kind": "files", "folder": str(tmp_path / "in")}
    assert here == Files(tmp_path / "other" / ".." / "in").identity()
    assert here != Files(tmp_path / "moved").identity()


@pytest.mark.parametrize(
    "name", ["a.json", "a.jsonl", "b/c/a.ndjson", "a.jsonl.gz", "a.json.bz2", "k=1/a.json"]
)
def test_names_that_are_read(tmp_path: Path, name: str):
    put(tmp_path / name)
    Files(tmp_path).check(once=True)
    assert Files(tmp_path).ready()


@pytest.mark.parametrize(
    "name", ["a.txt", "a.JSON", "a.json.tmp", "_a.json", ".a.json", "_b/a.json", ".b/c/a.json"]
)
def test_names_that_are_not_read(tmp_path: Path, name: str):
    put(tmp_path / name)
    assert "no file of events" in refused(Files(tmp_path)).message
    assert not Files(tmp_path).ready()
    Files(tmp_path).check(once=False)


def test_a_folder_must_be_there(tmp_path: Path):
    assert "no such folder" in refused(Files(tmp_path / "nowhere"), once=False).message
    assert "is a file" in refused(Files(put(tmp_path / "a.json"))).message


def test_a_mixture_is_refused(tmp_path: Path):
    put(tmp_path / "a.json")
    put_parquet(tmp_path / "b" / "b.parquet", x=pa.array([1]))
    error = refused(Files(tmp_path), once=False)
    assert error.message == "this folder holds both a.json and b.parquet"


def test_an_unreadable_file_is_named(tmp_path: Path):
    (tmp_path / "a.json").symlink_to(tmp_path / "nowhere")
    assert refused(Files(tmp_path)).where == str(tmp_path / "a.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_this_user_may_not_read_is_named(tmp_path: Path):
    path = put(tmp_path / "in" / "a.json")
    for locked in (path, path.parent):
        locked.chmod(0)
        assert refused(Files(path.parent)).where == str(locked)
        locked.chmod(0o700)


def test_every_parquet_file_is_looked_at(tmp_path: Path):
    put_parquet(tmp_path / "a.parquet", x=pa.array([1]))
    put(tmp_path / "b.parquet", "not at all Parquet")
    assert refused(Files(tmp_path)).where == str(tmp_path / "b.parquet")


def test_parquet_without_a_required_column_is_refused(tmp_path: Path):
    path = put_parquet(tmp_path / "a.parquet", profile_id=pa.array(["p"]), when=times("us"))
    error = refused(Files(tmp_path, required=REQUIRED))
    assert error.message == "column event_timestamp missing; found profile_id, when"
    assert error.expected == "profile_id string, event_timestamp timestamp"
    assert error.where == str(path)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (
            "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
            "file:///in/a%20b+%25.json.gz.  SQLSTATE: KD001",
            "/in/a b+%.json.gz",
        ),
        ("Could not read footer for file: file:/in/a.parquet.\nat x", "/in/a.parquet"),
        ("file:/in/a.parquet is not a Parquet file. Expected magic number", "/in/a.parquet"),
        ("Encountered error while reading file s3://b/a.parquet. Data type", "s3://b/a.parquet"),
        ("No space left on device", None),
    ],
)
def test_a_failing_file_is_found_in_the_error(text: str, path: str | None):
    assert failing_file(text) == path


def drain(frame: DataFrame, checkpoint: Path) -> list[Row]:
    """Return the rows of an availableNow run."""
    rows: list[Row] = []
    query = (
        frame.writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .start()
    )
    query.awaitTermination()
    return rows


def payloads(files: Files, spark: SparkSession, checkpoint: Path) -> dict[str, list[Any]]:
    """Return the records by the name of their file."""
    files.check(once=True)
    found: dict[str, list[Any]] = {}
    for row in drain(files.stream(spark), checkpoint):
        name = str(Path(row.topic).relative_to(files.folder))
        found.setdefault(name, []).append(json.loads(row.raw_payload))
    return found


@pytest.mark.stream
def test_json_lines_under_any_name(spark: SparkSession, tmp_path: Path):
    folder = tmp_path / "a b#c%20d[1]{x,y}*?é+~'\\q"
    put(folder / "crlf [2]*+%41.json", '\ufeff{"a": 1}\r\n\r\n \t\r\n{"a": 2}')
    put(folder / "2026-11-21T10:05:00.ndjson", '{"colon": 1}\n')
    put(folder / "sub %41" / "k=2" / "z.jsonl.gz", gzip.compress(b'{"gz": 1}\n'))
    put(folder / "only a mark.jsonl", "\ufeff")
    put(folder / "mark.jsonl", '\ufeff\n\ufeff\n{"b": 1}\n')
    put(folder / "empty.json", "")
    for hidden in ("_k=1/n.json", "_h/n.json", ".h/n.json", "_metadata.json", "_n.json", "n.txt"):
        put(folder / hidden, '{"hidden": 1}\n')
    assert payloads(Files(folder), spark, tmp_path / "checkpoint") == {
        "crlf [2]*+%41.json": [{"a": 1}, {"a": 2}],
        "2026-11-21T10:05:00.ndjson": [{"colon": 1}],
        "sub %41/k=2/z.jsonl.gz": [{"gz": 1}],
        "mark.jsonl": [{"b": 1}],
    }


@pytest.mark.stream
def test_the_frame_is_what_bronze_expects(spark: SparkSession, tmp_path: Path):
    path = put(tmp_path / "in" / "a.json", ' {"x":  1} \n{broken\n')
    os.utime(path, (WHEN.timestamp(), WHEN.timestamp()))
    frame = Files(path.parent).stream(spark)
    assert frame.schema.simpleString() == (
        "struct<record_id:string,raw_payload:string,topic:string,source_ts:timestamp>"
    )
    rows = drain(frame, tmp_path / "checkpoint")
    assert [row.raw_payload for row in rows] == [' {"x":  1} ', "{broken"]
    assert {row.topic for row in rows} == {str(path)}
    assert rows[0].source_ts.timestamp() == pytest.approx(WHEN.timestamp(), abs=0.001)
    assert len({row.record_id for row in rows}) == 2


@pytest.mark.stream
def test_an_old_file_that_arrives_late_is_read(spark: SparkSession, tmp_path: Path):
    folder, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    put(folder / "new.json", '{"new": 1}\n')
    assert len(drain(Files(folder).stream(spark), checkpoint)) == 1
    put(folder / "newer.json", '{"newer": 1}\n')
    os.utime(put(folder / "old.json", '{"old": 1}\n'), (86_400, 86_400))
    rows = drain(Files(folder).stream(spark), checkpoint)
    assert {row.raw_payload for row in rows} == {'{"old": 1}', '{"newer": 1}'}


@pytest.mark.stream
def test_parquet_of_several_writers(spark: SparkSession, tmp_path: Path):
    folder = tmp_path / "in [1]"
    put_parquet(folder / "pandas.parquet", ts=times("ns"), n=pa.array([1], pa.int32()))
    put_parquet(folder / "naive.parquet", ts=times("ns", None), n=pa.array([2], pa.int64()))
    put_parquet(folder / "spark 10:05.parquet", ts=times("us"), **{"d.ot": pa.array(["x"])})
    put_parquet(folder / "local.parquet", ts=times("us", None), n=pa.array([None], pa.int64()))
    assert payloads(Files(folder), spark, tmp_path / "checkpoint") == {
        "pandas.parquet": [{"ts": ISO, "n": 1}],
        "naive.parquet": [{"ts": ISO, "n": 2}],
        "spark 10:05.parquet": [{"ts": ISO, "d.ot": "x"}],
        "local.parquet": [{"ts": ISO}],
    }


@pytest.mark.stream
def test_parquet_times_without_nanoseconds(spark: SparkSession, tmp_path: Path):
    folder = tmp_path / "in"
    put_parquet(folder / "a.parquet", ts=times("us"), local=times("us", None))
    put_parquet(folder / "b.parquet", ts=times("ms"))
    assert payloads(Files(folder), spark, tmp_path / "checkpoint") == {
        "a.parquet": [{"ts": ISO, "local": ISO}],
        "b.parquet": [{"ts": "2026-11-21T10:05:01.123000Z"}],
    }


@pytest.mark.stream
def test_parquet_types_that_do_not_go_together_name_both_files(spark: SparkSession, tmp_path: Path):
    put_parquet(tmp_path / "a.parquet", x=pa.array([1]))
    put_parquet(tmp_path / "b.parquet", x=pa.array(["1"]))
    with pytest.raises(InputError, match="column x is") as error:
        Files(tmp_path).stream(spark)
    assert "a.parquet" in str(error.value)
    assert "b.parquet" in str(error.value)


def cut_gzip() -> bytes:
    whole = gzip.compress(os.urandom(3000))
    return whole[: len(whole) // 2]


@pytest.mark.stream
@pytest.mark.parametrize(
    ("good", "bad", "content"),
    [
        ("a.parquet", "b é+%.parquet", lambda: b"PAR1" + b"\0" * 50 + b"PAR1"),
        ("a.json", "b é+%.json.gz", cut_gzip),
    ],
)
def test_a_broken_file_that_arrives_while_running_is_named(
    spark: SparkSession, tmp_path: Path, good: str, bad: str, content: Callable[[], bytes]
):
    folder = tmp_path / "in put"
    put(folder / good) if good.endswith("json") else put_parquet(folder / good, x=pa.array([1]))
    with pytest.raises(StreamingQueryException) as error:
        for rows in running(Files(folder).stream(spark), tmp_path / "checkpoint"):
            if rows:
                put(folder / bad, content())
    assert failing_file(str(error.value)) == str(folder / bad)


def running(frame: DataFrame, checkpoint: Path, seconds: float = 30) -> Iterator[list[Row]]:
    """Yield the rows that came since, until the query fails or the time is over."""
    rows: list[Row] = []
    query = (
        frame.writeStream.option("checkpointLocation", str(checkpoint))
        .foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .start()
    )
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not query.awaitTermination(0.1):
            came, rows[:] = list(rows), []
            yield came
    finally:
        query.stop()


@pytest.mark.stream
def test_nanoseconds_in_a_session_that_refuses_them(spark: SparkSession, tmp_path: Path):
    put_parquet(tmp_path / "a.parquet", ts=times("ns"))
    other = spark.newSession()
    other.conf.set("spark.sql.legacy.parquet.nanosAsLong", "false")
    with pytest.raises(InputError, match="nanoseconds"):
        Files(tmp_path).stream(other)
