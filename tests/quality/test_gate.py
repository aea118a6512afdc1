"""The gate: what it finds right, what it finds wrong, what it leaves behind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from command_line import call
from runs import Small, reading
from tidemill.config.pipeline_file import load
from tidemill.features import FeatureView, aggregate, count
from tidemill.lake import lock
from tidemill.quality import suites, validation_run

Files = set[str]


def files(folder: Path) -> Files:
    """The files below a folder, without those of Delta tables and static parts of the docs."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {
        str(path)
        for path in found
        if "static" not in path.parts and not path.parts[0].startswith(("engagement_", "tidemill_"))
    }


@pytest.fixture(scope="module")
def root(small: Small, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.copy(tmp_path_factory.mktemp("gate") / "lake")


def test_a_lake_that_is_right(root: Path, spark: SparkSession, tmp_path: Path) -> None:
    """Beside a writer: the gate reads, and writes a table of its own."""
    before = files(root)
    with lock.hold(root, "a run that goes on", 0):
        answer = call("quality", "engagement", "--root", root, "--docs", tmp_path, "--json")
    assert answer.code == 0, answer
    assert [check for check in answer.json["checks"] if not check["ok"]] == []
    assert list(answer.json) == ["pipeline", "run", "at", "ok", "docs", "checks"]
    assert list(answer.json["checks"][0]) == [
        *("table", "check", "ok", "expected", "found", "value", "unexpected", "examples")
    ]
    names = {(check["table"], check["check"]) for check in answer.json["checks"]}
    assert names >= {
        ("engagement_events", "missing:profile_id"),
        ("engagement_events", "unknown_value:event_type"),
        ("engagement_events", "record_id:once"),
        ("engagement_buckets", "missing:gti"),
        ("engagement_buckets", "below:view_count"),
        ("engagement_features", "keys:once"),
        ("engagement_features", "below:view_count_1h"),
        ("engagement_features", "nested:view_count_1h"),
        ("engagement_features", "nested:view_count_12h"),
        ("engagement", "freshness:engagement"),
        ("engagement", "reconcile:engagement"),
        ("engagement", "events_per_hour"),
    }
    page = Path(answer.json["docs"])
    assert page == tmp_path / "index.html"
    assert "engagement_features" in page.read_text()
    assert {path.split("/")[0] for path in files(tmp_path)} <= {
        *("index.html", "expectations", "validations")
    }
    assert files(root) - before == {"_quality/_tidemill.lock"}

    lake = reading(spark, root)
    stored = lake.spark.table("tidemill_quality").collect()
    assert {(row["table_name"], row["check_name"]) for row in stored} == names
    assert {(row["run"], row["pipeline"], row["ok"]) for row in stored} == {
        (answer.json["run"], "engagement", True)
    }


def test_a_lake_that_is_wrong(root: Path, spark: SparkSession) -> None:
    """After the first run, whose number of events is what is usual."""
    reading(spark, root)
    spark.sql(
        "UPDATE engagement_features SET view_count_1h = 9, select_count_1d = -1 "
        "WHERE profile_id = 'p1' AND gti = 'g'"
    )
    spark.sql("UPDATE engagement_buckets SET view_count = -2 WHERE profile_id = 'p2'")
    spark.sql("UPDATE tidemill_quality SET value = 1000 WHERE check_name = 'events_per_hour'")
    answer = call("quality", "engagement", "--root", root)
    assert answer.code == 1, answer
    failed = [line.split("  ")[1:] for line in answer.out.splitlines() if line.startswith("failed")]
    found = {(table, told.split(": ")[0]) for table, told in failed}
    assert found == {
        ("engagement_buckets", "below:view_count"),
        ("engagement_features", "below:select_count_1d"),
        ("engagement_features", "nested:select_count_12h"),
        ("engagement_features", "nested:view_count_1h"),
        ("engagement", "events_per_hour"),
        ("engagement", "reconcile:engagement"),
    }
    assert "profile_id p1, gti g" in answer.out
    assert "min_value 500.0, max_value 1500.0" in answer.out
    assert (root / "_quality" / "docs" / "index.html").is_file()
    assert spark.table("tidemill_quality").select("run").distinct().count() == 2


def test_without_great_expectations(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "great_expectations", None)
    answer = call("quality", "engagement", "--root", root, "--json")
    assert answer.code == 2
    assert answer.error["expected"] == "pip install 'tidemill[quality]'"


def pairs(view: FeatureView) -> Iterator[tuple[str, str]]:
    return ((more.name, less.name) for more, less in suites.nested(view))


def test_windows_inside_one_another() -> None:
    shipped = set(pairs(load("engagement").views[0]))
    assert shipped == {
        (f"{kind}_count_{longer}", f"{kind}_count_{shorter}")
        for kind in ("select", "highlight", "view")
        for longer, shorter in (("1d", "12h"), ("12h", "1h"))
    }
    view = FeatureView(
        name="v",
        keys=["k"],
        event_time="t",
        schema={"k": "string", "n": "bigint", "ok": "boolean"},
        features=[
            aggregate("max", of="n").over("1h", "1d"),
            aggregate("min", of="n").over("1h", "1d"),
            aggregate("min", of="n").over("1h", "1d").named("set").empty(0),
            aggregate("bool_and", of="ok").over("1h", "1d"),
            aggregate("sum", of="n").over("1h", "1d"),
            count().over("1h", "2h").offset("1d"),
            count().over("1d").named("alone"),
        ],
    )
    assert set(pairs(view)) == {
        ("n_max_1d", "n_max_1h"),
        ("n_min_1h", "n_min_1d"),
        ("ok_bool_and_1h", "ok_bool_and_1d"),
        ("count_2h_1d_ago", "count_1h_1d_ago"),
    }


def test_compute_that_keeps_no_frames_is_taken_as_it_is() -> None:
    class Frame:
        def __init__(self, why: str) -> None:
            self.why = why

        def persist(self) -> None:
            raise PySparkException(self.why)

    serverless: Any = Frame("[NOT_SUPPORTED_WITH_SERVERLESS] PERSIST TABLE is not supported")
    with validation_run.kept(serverless):
        pass
    broken: Any = Frame("the disk is gone")
    with pytest.raises(PySparkException, match="disk"), validation_run.kept(broken):
        pass
