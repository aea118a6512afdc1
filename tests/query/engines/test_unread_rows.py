"""Answers that need a part of a table alone: who has one may end while files are still read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tidemill.lake.commits import data_files

FILES, ROWS = 60, 50_000
ASK = """
import sys
from pathlib import Path
from tidemill.query.engines.duckdb_engine import DuckDBEngine
print(DuckDBEngine(Path(sys.argv[1])).answer("SELECT text FROM numbers LIMIT 2"))
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of many files; URLs write the names of its folder and partitions otherwise."""
    root = tmp_path_factory.mktemp("unread") / "a lake of 50%"
    texts = pa.array([f"text {number}" for number in range(ROWS)])
    for number in range(FILES):
        part = pa.array([f"{number % 3}: a/b %20"] * ROWS)
        rows = pa.table({"text": texts, "part": part})
        write_deltalake(str(root / "numbers"), rows, mode="append", partition_by=["part"])
    return root


def test_a_process_ends_with_its_answer(lake: Path) -> None:
    """Where Arrow reads through Python, most of these crash after the answer, and some hang."""
    for _ in range(3):
        command = [sys.executable, "-c", ASK, str(lake)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("(('text',), [['text 0'],")


def test_rows_are_those_of_the_files(lake: Path) -> None:
    folder = lake / "numbers"
    rows = data_files.rows(DeltaTable(str(folder)), folder)
    assert rows.count_rows() == FILES * ROWS
    one = rows.to_table(["text"], filter=pa.compute.field("part") == "1: a/b %20")
    assert one.num_rows == FILES * ROWS // 3
    older = data_files.rows(DeltaTable(str(folder), version=0), folder)
    assert older.count_rows() == ROWS
