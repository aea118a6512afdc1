"""The notebooks run as scripts, one after the other in the run's session, and are published as they
are.

Each counts its plots again with DuckDB, and fails where a number differs.
"""

from __future__ import annotations

import json
import random
import runpy
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import oracle
from lakes import Event, at, payload
from runs import of_files, run_once, write_file

publishing = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "notebooks.py"))
NOTEBOOKS: list[Path] = publishing["sources"]()
NAMES = [path.stem for path in NOTEBOOKS]
PLOTS = {
    "01_tour": ["01_top_titles"],
    "02_explore_gold": ["02_decay", "02_heat", "02_trending"],
    "03_late_data": ["03_buckets", "03_gold"],
    "04_time_travel": ["04_versions"],
    "05_cost": ["05_rows", "05_seconds", "05_written"],
    "06_train_a_model": ["06_expected"],
}

pytestmark = pytest.mark.notebook


def day() -> list[Event]:
    """A day of events up to noon, more towards its end; some titles and profiles are preferred."""
    dice, found = random.Random(5), []
    for number in range(1500):
        time = at("12:00") - timedelta(minutes=1440 * dice.random() ** 1.5 + 0.01)
        who, what = (int(dice.paretovariate(0.9)) % most + 1 for most in (40, 14))
        kind = dice.choice(oracle.TYPES)
        found.append((f"e{number}", f"profile-{who}", f"title-{what}", kind, time))
    return sorted(found, key=lambda event: event[4])


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of a day in three batches, one of a file each."""
    folder = tmp_path_factory.mktemp("notebooks")
    events, definition = day(), of_files(folder / "input")
    for number in range(3):
        records = map(payload, events[number * 500 : (number + 1) * 500])
        write_file(folder / "input", f"{number}.jsonl", records, age=9 - number)
        run_once(folder / "lake", definition)
    return folder / "lake"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=NAMES)
def test_it_runs_and_its_plots_are_right(
    notebook: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMILL_ROOT", str(root))
    monkeypatch.setenv("TIDEMILL_PLOTS", str(tmp_path))
    runpy.run_path(str(notebook), run_name="__main__")
    assert sorted(path.stem for path in tmp_path.glob("*.png")) == PLOTS[notebook.stem]
    assert "assert " in notebook.read_text(encoding="utf-8")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=NAMES)
def test_it_is_published_as_it_is(notebook: Path) -> None:
    """Otherwise: `make notebooks`."""
    fresh = publishing["published"](notebook.read_text(encoding="utf-8"))
    assert publishing["target"](notebook).read_text(encoding="utf-8") == fresh


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=NAMES)
def test_its_cells_hold_the_same_code(notebook: Path) -> None:
    """Nothing is lost on the way: the code of the cells, one after the other, is the source's."""
    source = notebook.read_text(encoding="utf-8")
    assert source.startswith("# Databricks notebook source\n# MAGIC %md\n# MAGIC # ")
    cells = json.loads(publishing["target"](notebook).read_text(encoding="utf-8"))["cells"]
    code = "".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    kept = "".join(line for line in source.splitlines() if not line.startswith("# "))
    assert "".join(code.split()) == "".join(kept.split())


def test_every_published_notebook_has_its_source() -> None:
    found = {path.stem for path in (NOTEBOOKS[0].parent / "published").glob("*.ipynb")}
    assert found == set(NAMES) == set(PLOTS)
