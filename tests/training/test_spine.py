"""What a spine may hold, and what is said of one that would give wrong values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from command_line import call
from lakes import at
from runs import Small
from tidemill import Lake, open_lake
from tidemill.cli.commands.training import _lines
from tidemill.errors import UsageError

COLUMNS = "profile_id STRING, gti STRING, timestamp TIMESTAMP, label INT"
ROW = ("p1", "g", at("11:31"), 1)
SET = {"views": "engagement"}


@pytest.fixture(scope="module")
def lake(small: Small) -> Lake:
    return open_lake(small.root, pipeline="engagement")


def frame(lake: Lake, rows: list[tuple], columns: str = COLUMNS) -> DataFrame:
    return lake.spark.createDataFrame(rows, columns)


def refused(lake: Lake, rows: list[tuple], columns: str = COLUMNS, **words: Any) -> str:
    with pytest.raises(UsageError) as error:
        lake.training_set(frame(lake, rows, columns), **{**SET, **words})
    return str(error.value)


def test_a_row_that_would_be_wrong_is_refused(lake: Lake) -> None:
    """How many, of how many, and what was expected."""
    p, g, time, label = ROW
    said = refused(lake, [ROW, (None, g, time, label)])
    assert said == "spine: profile_id is null in 1 of 2 rows (expected: a value in every row)"
    assert "timestamp is null in 1 of 1 rows" in refused(lake, [(p, g, None, 0)])
    assert "has no rows" in refused(lake, [])
    twice = refused(lake, [ROW, (p, g, time, 0), (p, "h", time, 0)])
    assert "2 rows share their keys and time with another, such as p1, g, 2026-11-21" in twice
    early = refused(lake, [(p, g, at("01T10:00").replace(year=2025, month=10), 0)])
    assert "1 of 1 rows have a time that engagement cannot answer: 1 before 2025-10-" in early
    assert "1 after" in refused(lake, [(p, g, at("11:32"), 0)])


def test_a_column_that_would_be_wrong_is_refused(lake: Lake) -> None:
    p, g, time, _ = ROW
    said = refused(lake, [(p, time)], "profile_id STRING, timestamp TIMESTAMP")
    assert said.startswith("spine: has no column 'gti'")
    said = refused(lake, [(p, g, time)], "profile_id STRING, gti STRING, event_timestamp TIMESTAMP")
    assert "no column 'timestamp'" in said and "'event_timestamp'" in said
    said = refused(lake, [(p, g, time, 1)], COLUMNS.replace("label", "view_count_1h"))
    assert "column 'view_count_1h' is also the name of a feature of view engagement" in said
    said = refused(lake, [(7, g, time, 1)], COLUMNS.replace("profile_id STRING", "profile_id INT"))
    assert "key profile_id is int, in the view a string" in said
    said = refused(lake, [(p, g, 1, 1)], COLUMNS.replace("TIMESTAMP", "BIGINT"))
    assert "column timestamp is bigint, which names no time of day" in said
    said = refused(lake, [(p, g, "12:30", 1)], COLUMNS.replace("TIMESTAMP", "STRING"))
    assert "timestamp is no TIMESTAMP in 1 of 1 rows, such as '12:30'" in said
    assert "'__x'" in refused(lake, [(p, g, time, 1)], COLUMNS.replace("label", "__x"))


def test_a_word_that_is_no_choice_is_refused(lake: Lake) -> None:
    assert "did you mean 'served'" in refused(lake, [ROW], mode="server")
    assert "unknown outside 'drop'" in refused(lake, [ROW], outside="drop")
    assert "views are engagement, engagement" in refused(lake, [ROW], views=["engagement"] * 2)


def test_rows_stay_as_they_are(lake: Lake) -> None:
    """Twice the same key and time with other labels, and times that cannot be answered, where they
    are asked for; each row once, its columns first."""
    p, g, time, _ = ROW
    rows = [ROW, (p, g, time, 0), (p, g, at("11:32"), 2), ("nobody", g, time, 3)]
    words = {"duplicates": "keep", "outside": "null"}
    made = lake.training_set(frame(lake, rows), **SET, **words)
    assert made.columns[:4] == ["profile_id", "gti", "timestamp", "label"]
    assert made.columns[-1] == "outside_history"
    found = {row["label"]: row for row in made.collect()}
    assert {n: row["view_count_1d"] for n, row in found.items()} == {0: 2, 1: 2, 2: None, 3: 0}
    outside = {n: row["outside_history"] for n, row in found.items()}
    assert outside == {0: [], 1: [], 2: ["engagement"], 3: []}


def test_pandas_and_times_without_a_zone_are_utc(lake: Lake) -> None:
    import pandas as pd

    rows = pd.DataFrame(
        {"profile_id": ["p1"], "gti": ["g"], "at": [pd.Timestamp("2026-11-21T10:01:30")]}
    )
    made = lake.training_set(rows, "engagement", time="at")
    assert made.first()["view_count_1h"] == 1
    text = frame(
        lake, [("p1", "g", "2026-11-21 12:01:30+02:00", 1)], COLUMNS.replace("TIMESTAMP", "STRING")
    )
    assert lake.training_set(text, **SET).first()["view_count_1h"] == 1


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_file_in_a_file_out(
    small: Small, spark: SparkSession, tmp_path: Path, suffix: str
) -> None:
    """The command, of each format: a code with leading zeros stays what it is."""
    spine = tmp_path / "spine.csv"
    spine.write_text(
        "profile_id,gti,timestamp,code,label\n"
        "p1,g,2026-11-21T11:31:00Z,007,0.5\np2,g,2026-11-20T23:31:59Z,010,1.5\n"
    )
    out = tmp_path / f"set.{suffix}"
    words = ("--spine", spine, "--out", out, "--root", small.root)
    answer = call("training-set", *words, "--view", "engagement", "--json")
    assert answer.code == 0, answer
    assert answer.json["rows"] == 2 and answer.json["views"][0]["outside"] == 0
    reader = {"csv": spark.read.option("header", "true").csv, "jsonl": spark.read.json}
    rows = reader.get(suffix, spark.read.parquet)(str(out)).collect()
    found = {
        r["code"]: (int(r["view_count_1h"]), int(r["highlight_count_1h"]), float(r["label"]))
        for r in rows
    }
    assert found == {"007": (1, 0, 0.5), "010": (0, 1, 1.5)}
    assert {path.name for path in tmp_path.iterdir()} == {"spine.csv", out.name}


def test_a_file_that_cannot_be_read_or_written_is_named(small: Small, tmp_path: Path) -> None:
    def error(spine: Path, out: Path) -> dict[str, str]:
        words = ("--spine", spine, "--out", out, "--root", small.root)
        answer = call("training-set", *words, "--json")
        assert answer.code == 2, answer
        return dict(answer.json["error"])

    broken = tmp_path / "broken.csv"
    broken.write_text("profile_id,gti,timestamp\np1,g,2026-11-21T11:31:00Z\np1,g\n")
    assert "no known format" in error(tmp_path / "spine.xlsx", tmp_path / "set.csv")["message"]
    assert "does not exist" in error(tmp_path / "spine.csv", tmp_path / "set.csv")["message"]
    assert error(broken, tmp_path / "no" / "set.csv")["message"] == "is in no folder"
    assert error(broken, tmp_path / "set.csv")["where"] == str(broken)
    lines = tmp_path / "broken.jsonl"
    lines.write_text(json.dumps({"profile_id": "p1"}) + "\n{")
    assert error(lines, tmp_path / "set.csv")["where"] == str(lines)


def test_the_command_says_what_it_wrote() -> None:
    known = {"first": "2026-11-20T10:00:00Z", "last": "2026-11-21T10:00:00Z"}
    views = [{"view": "plays", "outside": 3, **known}]
    facts = {"output": "set.csv", "rows": 1200, "columns": ["a", "b"], "views": views}
    assert _lines(facts) == [
        "wrote set.csv: 1,200 rows, 2 columns",
        "  plays: answered from 2026-11-20T10:00:00Z to 2026-11-21T10:00:00Z; 3 rows outside, null",
    ]
