"""Files that are not what their names say, at the start and while running."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from command_line import call
from lakes import Event, at
from runs import of_files, opened, reading
from tidemill.errors import QueryError
from tidemill.lake.batches import BatchRow
from tidemill.pipeline import runner
from tidemill.pipeline.observer import Callback, Tell

NAMES = ("event_id", "profile_id", "gti", "event_type", "event_timestamp")
GOOD: list[Event] = [("a", "p", "g", "view", at("10:00")), ("b", "q", "g", "view", at("10:01"))]


def write_parquet(path: Path, events: Sequence[Event]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = dict(zip(NAMES, map(list, zip(*events, strict=True)), strict=True))
    pq.write_table(pa.table(columns), path, compression="none", use_dictionary=False)
    return path


def broken_inside(path: Path) -> Path:
    """A Parquet file whose footer is whole and whose pages are noise: no check at start sees it."""
    write_parquet(path, [(f"n{i}", "p", "g", "view", at("10:02")) for i in range(500)])
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    noise = random.Random(1).randbytes(len(whole) - footer - 4)
    path.write_bytes(whole[:4] + noise + whole[-footer:])
    return path


def once(folder: Path, root: Path, *words: str):
    named = ("--source", "files", "--input", folder, "--root", root)
    return call("run", "engagement", *named, "--once", "--json", *words)


@pytest.mark.parametrize(
    ("content", "found"),
    [(b"", "it is empty"), (b"hello", "5 bytes"), (b'{"event_id": "a"}\n' * 20, "360 bytes")],
)
def test_no_parquet_at_the_start(tmp_path: Path, content: bytes, found: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.parquet").write_bytes(content)
    answer = once(tmp_path / "in", tmp_path / "lake")
    assert answer.code == 2
    assert (answer.error["kind"], answer.error["where"]) == (
        "input",
        str(tmp_path / "in" / "x.parquet"),
    )
    assert found in str(answer.error["message"])
    assert not (tmp_path / "lake").exists()


def test_half_a_parquet_file_at_the_start(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "in" / "x.parquet", GOOD)
    path.write_bytes(path.read_bytes()[:-40])
    answer = once(tmp_path / "in", tmp_path / "lake")
    assert (answer.code, answer.error["where"]) == (2, str(path))


@pytest.mark.stream
def test_a_file_that_breaks_a_later_run(tmp_path: Path, spark: SparkSession) -> None:
    """The run fails and names the file; without it the next one goes on, and nothing is lost."""
    folder, root = tmp_path / "in", tmp_path / "lake"
    write_parquet(folder / "1.parquet", GOOD)
    assert once(folder, root).json["accepted"] == 2

    path = broken_inside(folder / "2.parquet")
    answer = once(folder, root)
    assert answer.code == 3
    assert (answer.error["kind"], answer.error["where"]) == ("query", str(path))
    assert "mend or move it away" in str(answer.error["expected"])

    path.unlink()
    write_parquet(folder / "3.parquet", [("c", "p", "g", "view", at("10:03"))])
    assert once(folder, root).json["accepted"] == 1
    lake = reading(spark, root)
    assert {key: row["view_count_1d"] for key, row in lake.gold().items()} == {
        ("p", "g"): 2,
        ("q", "g"): 1,
    }


@pytest.mark.stream
def test_a_file_that_breaks_a_run_that_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    write_parquet(folder / "1.parquet", GOOD)
    definition = of_files(folder).overridden(
        {"triggers": dict.fromkeys(("land", "clean", "feature"), "1s")}
    )
    with (
        opened(tmp_path / "lake", definition) as pipeline,
        pytest.raises(QueryError) as failed,
    ):
        runner.run(pipeline, runner.Stop(), [Callback(then_break(folder))])
    assert failed.value.exit_code == 3
    assert failed.value.where == str(folder / "2.parquet")


def then_break(folder: Path) -> Tell:
    """Puts a file that is no Parquet beside the first, once the first has come to gold."""

    def look(rows: Sequence[BatchRow]) -> None:
        broken = folder / "2.parquet"
        if any(row.query == "feature" for row in rows) and not broken.exists():
            beside = folder / "_2"
            beside.write_bytes(b"no parquet")
            beside.replace(broken)

    return look
