"""An aggregate of an installed package: the page's own example, built, installed, and run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import quick_spark
from lakes import at
from runs import write_file
from tidemill.config.settings import iso

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own-aggregate.md").read_text(encoding="utf-8")
PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "my-package"
version = "1.0"

"""
PIPELINE = """\
pipeline: rooms
source: {kind: files}
views:
  - name: rooms
    keys: [room]
    event_time: at
    schema: {room: string, degrees: double}
    features:
      - {range: degrees, over: [1h]}
      - {range: degrees, over: [1h], where: degrees > 20, name: warm, empty: -1}
      - {count: {}, over: [1h]}
"""
RUN = """\
import sys
from command_line import call
run = call("run", sys.argv[1], "--once", "--input", sys.argv[2], "--root", sys.argv[3], "--json")
assert run.code == 0, run
words = "SELECT room, degrees_range_1h, warm_range_1h FROM rooms_features ORDER BY room"
print(call("query", words, "--pipeline", sys.argv[1], "--root", sys.argv[3], "--json").out)
"""
Install = Callable[..., Path]


def block(language: str) -> str:
    """The page's block of code in a language."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Builds a package and installs it, alone, into a folder, which is yielded."""

    def installed(code: str, name: str = "my-package") -> Path:
        source, folder = tmp_path / "source" / name, tmp_path / "installed"
        source.mkdir(parents=True)
        module = name.replace("-", "_")
        points = block("toml").replace("my_package", module)
        (source / "pyproject.toml").write_text(PROJECT.replace("my-package", name) + points)
        (source / f"{module}.py").write_text(code)
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        built = ["--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(source)]
        subprocess.run([*pip, "wheel", *built, str(source)], check=True)
        wheel = next(source.glob("*.whl"))
        there = ["--no-deps", "--no-index", "--target", str(folder)]
        subprocess.run([*pip, "install", *there, str(wheel)], check=True)
        return folder

    return installed


def python(folder: Path, *words: object, **environment: object) -> subprocess.CompletedProcess[str]:
    """This Python with the packages of a folder, and nothing else that is new."""
    paths = [folder, ROOT / "pipelines", ROOT / "tests" / "support"]
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            **{name: str(value) for name, value in environment.items()},
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def sql(folder: Path, pipeline: Path) -> subprocess.CompletedProcess[str]:
    words = ("sql", "features", "--view", "rooms", "--pipeline", pipeline)
    return python(folder, "-m", "tidemill.cli", *words)


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    path = tmp_path / "rooms.yaml"
    path.write_text(PIPELINE)
    return path


def test_the_pages_example_is_an_aggregate_like_the_shipped_ones(
    install: Install, pipeline: Path, tmp_path: Path
) -> None:
    folder = install(block("python"))
    printed = sql(folder, pipeline)
    assert printed.returncode == 0, printed.stderr
    assert "max(degrees_high)" in printed.stdout and "AS degrees_range_1h" in printed.stdout
    degrees = {
        "hall": [("10:00", 18.5), ("10:20", 21.5), ("10:59", 20.25)],
        "attic": [("10:10", 7)],
    }
    records = [
        json.dumps({"room": room, "degrees": value, "at": iso(at(time))})
        for room, each in degrees.items()
        for time, value in each
    ]
    write_file(tmp_path / "input", "1.jsonl", records, age=60)
    words = (pipeline, tmp_path / "input", tmp_path / "lake")
    ran = python(folder, "-c", RUN, *words, **quick_spark.environment(tmp_path))
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout.strip().splitlines()[-1])
    assert answer["rows"] == [["attic", 0.0, -1.0], ["hall", 3.0, 1.25]]


def test_without_the_package_the_file_says_what_is_missing(pipeline: Path) -> None:
    told = sql(ROOT / "tests", pipeline)
    assert told.returncode == 2
    assert f"{pipeline}:9: views[0].features[0]: unknown aggregate 'range'" in told.stderr


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("RANGE = 5", "entry point my_package:RANGE of my-package: is no Aggregate but 5"),
        (
            "from tidemill.features.aggregates import SHIPPED\nRANGE = SHIPPED['max']",
            "entry point my_package:RANGE of my-package: is called 'max', which is taken",
        ),
        (block("python").replace('"range"', '"ratio"'), "is called 'ratio', which is taken"),
        (block("python").replace('"range"', '"my range"'), "is called 'my range'"),
        ("OTHER = 5", "of my-package: cannot be loaded: module 'my_package' has no attribute"),
        ("import no_such_module", "cannot be loaded: No module named 'no_such_module'"),
    ],
)
def test_a_package_that_is_wrong_is_named(
    install: Install, pipeline: Path, code: str, message: str
) -> None:
    told = sql(install(code), pipeline)
    assert told.returncode == 2
    assert message in " ".join(told.stderr.split())
    assert "Traceback" not in told.stderr


def test_two_packages_of_one_name_are_refused(install: Install, pipeline: Path) -> None:
    install(block("python"))
    told = sql(install(block("python"), "other-package"), pipeline)
    assert told.returncode == 2
    assert "is called 'range', which is taken" in told.stderr
