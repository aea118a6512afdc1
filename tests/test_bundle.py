"""The Databricks bundle, read offline: its names lead somewhere, and its command line is ours.

Nothing here talks to a workspace; that the bundle deploys and runs is not shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from commands import parsed

pytestmark = pytest.mark.bundle

ROOT = Path(__file__).parents[1]
BUNDLE = yaml.safe_load((ROOT / "databricks.yml").read_text(encoding="utf-8"))
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def _jobs() -> Iterator[tuple[Path, dict[str, Any]]]:
    for pattern in BUNDLE["include"]:
        for path in sorted(ROOT.glob(pattern)):
            found = yaml.safe_load(path.read_text(encoding="utf-8"))
            for job in found["resources"]["jobs"].values():
                yield path, job


def _tasks() -> Iterator[tuple[Path, dict[str, Any], dict[str, Any]]]:
    for path, job in _jobs():
        for task in job["tasks"]:
            yield path, job, task


def test_there_is_one_job_with_one_task() -> None:
    assert [task["task_key"] for _, _, task in _tasks()] == ["run"]


def test_every_variable_is_declared_and_used() -> None:
    texts = [ROOT / "databricks.yml", *(path for path, _ in _jobs())]
    found = re.findall(r"\$\{var\.(\w+)\}", "".join(path.read_text() for path in texts))
    assert set(found) == set(BUNDLE["variables"])
    for target in BUNDLE["targets"].values():
        assert set(target.get("variables", {})) <= set(BUNDLE["variables"])
    assert all("default" in variable for variable in BUNDLE["variables"].values())


def test_the_targets_are_dev_and_prod() -> None:
    assert {n: t["mode"] for n, t in BUNDLE["targets"].items()} == {
        "dev": "development",
        "prod": "production",
    }
    assert [name for name, target in BUNDLE["targets"].items() if target.get("default")] == ["dev"]


def test_a_task_runs_on_a_declared_job_cluster_of_classic_compute() -> None:
    for _, job, task in _tasks():
        clusters = {each["job_cluster_key"]: each["new_cluster"] for each in job["job_clusters"]}
        assert clusters[task["job_cluster_key"]]["spark_version"] == "${var.runtime}"
    assert re.fullmatch(r"\d+(\.\d+)?\.x-scala2\.13", BUNDLE["variables"]["runtime"]["default"])


def test_one_run_at_a_time() -> None:
    assert [job["max_concurrent_runs"] for _, job in _jobs()] == [1]


def test_the_wheel_is_built_where_the_task_takes_it_from() -> None:
    folder = re.search(r"--wheel-dir (\S+)", BUNDLE["artifacts"]["tidemill"]["build"])
    assert folder is not None
    for path, _, task in _tasks():
        (wheel,) = [library["whl"] for library in task["libraries"]]
        assert (path.parent / wheel).parent.resolve() == ROOT / folder[1]


def test_the_entry_point_is_the_package_s() -> None:
    for _, _, task in _tasks():
        wheel = task["python_wheel_task"]
        assert f'\nname = "{wheel["package_name"]}"\n' in PROJECT
        assert f"\n[project.scripts]\n{wheel['entry_point']} = " in PROJECT


def test_the_command_line_is_ours() -> None:
    for _, _, task in _tasks():
        said = parsed(task["python_wheel_task"]["parameters"])
        assert said["pipeline"] == "engagement"
        assert said["once"] is True
        assert said["clock"] == "wall"
        assert (said["catalog"], said["schema"]) == ("${var.catalog}", "${var.schema}")
