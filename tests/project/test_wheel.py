"""The wheel holds what runs, asks for no Spark, and works alone from any folder."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT)], check=True)
    return next(folder.glob("tidemill-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of executables of a new environment: the wheel and what it asks for, as locked."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "venv")
    constraints = folder / "constraints.txt"
    constraints.write_text(locked_versions((ROOT / "requirements.lock").read_text()))
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "venv/bin/python")]
    options = ["--quiet", "--constraint", str(constraints)]
    subprocess.run([*pip, "install", *options, str(wheel)], check=True)
    return folder / "venv" / "bin"


def locked_versions(lock: str) -> str:
    """The lock without its hashes, which constraints on a local wheel cannot have."""
    lines = re.findall(r"^[a-z].*?(?= \\$)", lock, flags=re.MULTILINE)
    return "\n".join(lines)


def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def files(folder: str, pattern: str) -> set[str]:
    return {path.relative_to(ROOT / folder).as_posix() for path in (ROOT / folder).rglob(pattern)}


def test_metadata_asks_for_spark_only_in_the_extra(wheel: Path) -> None:
    required = metadata(wheel).get_all("Requires-Dist") or []
    always = {re.split(r"[^A-Za-z0-9-]", line)[0] for line in required if "extra ==" not in line}
    assert always == {
        "deltalake",
        "duckdb",
        "msgpack",
        "numpy",
        "prometheus-client",
        "psutil",
        "pyarrow",
        "pydantic",
        "pyyaml",
        "rich",
        "sqlglot",
        "tomli",
        "typer",
        "xxhash",
    }
    assert "delta-spark==4.4.0; extra == 'local'" in required
    assert metadata(wheel)["Requires-Python"] == ">=3.10"
    assert metadata(wheel)["License-Expression"] == "Apache-2.0"


def test_contents(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    inside = {name.removeprefix("tidemill/") for name in names if name.startswith("tidemill/")}
    assert files("pipelines/tidemill", "*.py") <= inside
    assert {f"sql/{name}" for name in files("sql", "*.sql")} <= inside
    assert "sql/gold/features.sql" in inside
    assert {
        f"config/shipped/{name}" for name in files("pipelines/tidemill/config/shipped", "*.y*ml")
    } <= inside
    assert {"config/shipped/engagement.yaml", "py.typed"} <= inside
    assert {name.split("/")[-1] for name in names if "/licenses/" in name} == {"LICENSE"}
    foreign = {name for name in names if not re.match(r"tidemill(-[\d.]+\.dist-info)?/", name)}
    assert not foreign
    folder = "operations/templates"
    templates = {f"{folder}/{name}" for name in files(f"pipelines/tidemill/{folder}", "*")}
    templates |= {
        "monitoring/report/report.html",
        "monitoring/report/sections.html",
        "query/chart.html",
    }
    templates |= {"monitoring/report/style.css", "monitoring/pages/page.html"}
    assert f"{folder}/pipeline.yaml" in templates <= inside
    assert "databricks/bundle/bundle.schema.json" in inside
    known = r"\.(py|sql|ya?ml|schema\.json)$|^py\.typed$"
    assert not {name for name in inside - templates if not re.search(known, name)}


def test_clean_environment_has_no_spark(installed: Path) -> None:
    answer = call(installed / "python", "-c", "import tidemill, pyspark", cwd=installed)
    assert "No module named 'pyspark'" in answer.stderr


def test_sql_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    answer = call(installed / "tidemill", "sql", "features", "--view", "engagement", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "engagement_buckets" in answer.stdout
    assert "select_count_1d" in answer.stdout
    assert not list(tmp_path.iterdir())


def test_a_command_that_needs_spark_names_the_extra(installed: Path, tmp_path: Path) -> None:
    answer = call(installed / "tidemill", "query", "SELECT 1", "--root", "lake", cwd=tmp_path)
    assert answer.returncode == 2, answer.stderr
    assert "pip install 'tidemill[local]'" in answer.stderr
    assert "Traceback" not in answer.stderr


def call(*command: Path | str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
