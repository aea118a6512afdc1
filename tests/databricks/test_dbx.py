"""The files for dbx: generated from the bundle, as it is now, and read by dbx itself.

dbx needs other packages than we do (click before 8.2, pydantic 1), so it gets an environment of its
own, made from the package index.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from command_line import call
from tidemill.databricks import bundle as bundles
from tidemill.databricks import dbx
from tidemill.errors import DefinitionError

pytestmark = pytest.mark.bundle

ROOT = Path(__file__).parents[2]
NEEDS = ("dbx==0.8.19", "click<8.2", "pydantic<2", "rich<=13.0", "setuptools<81")
UNREACHABLE = ("Connection", "connection", "Max retries", "from versions: none", "Name or service")


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The bundle and its generated files, in a folder of this test's own."""
    for name in ("resources", "conf", ".dbx"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("databricks.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_files_are_up_to_date() -> None:
    answer = call("dbx", "export", "--folder", ROOT, "--check", "--json")
    assert (answer.code, answer.json["changed"]) == (0, [])


def test_a_changed_bundle_makes_them_stale_until_they_are_written(copied: Path) -> None:
    path = copied / "databricks.yml"
    path.write_text(path.read_text().replace("default: 30s", "default: 45s"))
    assert call("dbx", "export", "--folder", copied, "--check").code == 1
    assert call("dbx", "export", "--folder", copied, "--json").json["changed"] == [dbx.DEPLOYMENT]
    assert "- 45s" in (copied / dbx.DEPLOYMENT).read_text()
    assert call("dbx", "export", "--folder", copied, "--check").code == 0


def workflows() -> Iterator[tuple[str, dict[str, Any]]]:
    deployment = yaml.safe_load((ROOT / dbx.DEPLOYMENT).read_text(encoding="utf-8"))
    for environment, found in deployment["environments"].items():
        for workflow in found["workflows"]:
            yield environment, workflow


def test_nothing_stays_open_and_one_job_writes_in_each_environment() -> None:
    assert "${" not in (ROOT / dbx.DEPLOYMENT).read_text(encoding="utf-8")
    running = [
        (environment, workflow["name"])
        for environment, workflow in workflows()
        if "tags" in workflow
        and (workflow.get("continuous") or workflow["schedule"])["pause_status"] == "UNPAUSED"
    ]
    assert running == [
        ("dev", "tidemill-features-scheduled"),
        ("staging", "tidemill-features-scheduled"),
        ("prod", "tidemill-features-stream"),
    ]


def test_a_task_is_the_bundle_s_on_a_job_cluster() -> None:
    for _, workflow in workflows():
        clusters = [cluster["job_cluster_key"] for cluster in workflow["job_clusters"]]
        for task in workflow["tasks"]:
            assert task["job_cluster_key"] in clusters
            assert not [each for each in task.get("libraries", []) if "whl" in each]


def test_an_open_command_line_is_refused(copied: Path) -> None:
    path = copied / "databricks.yml"
    path.write_text(path.read_text().replace("    default: 30s\n", ""))
    with pytest.raises(DefinitionError, match=r"\$\{var.trigger\} stays open"):
        dbx.exported(bundles.read(copied))


# -- dbx itself ----------------------------------------------------------------------------------

READ = """
import json
from pathlib import Path
from dbx.api.config_reader import ConfigReader

config = ConfigReader(Path("conf/deployment.yml")).get_config()
found = {
    each.name: {
        "workflows": {w.name: [task.task_key for task in w.tasks] for w in each.payload.workflows},
        "artifacts": each.get_project_info().properties.artifact_location,
    }
    for each in config.environments
}
print("found:" + json.dumps(found))
"""


@pytest.fixture(scope="module")
def legacy_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with dbx in it; skips where no package index can be reached."""
    folder = tmp_path_factory.mktemp("dbx")
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    done = subprocess.run([*pip, "--no-compile", *NEEDS], capture_output=True, text=True)
    if done.returncode and any(word in done.stderr for word in UNREACHABLE):
        pytest.skip(f"no package index: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return python


def test_dbx_reads_them(legacy_python: Path) -> None:
    done = subprocess.run(
        [legacy_python, "-c", READ], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.partition("found:")[2])
    assert found["prod"] == {
        "workflows": {
            "tidemill-features-audit": ["reconcile", "recompute", "expectations"],
            "tidemill-features-scheduled": ["run", "quality", "maintain", "report"],
            "tidemill-features-stream": ["stream"],
        },
        "artifacts": "dbfs:/Shared/dbx/tidemill/prod",
    }
    assert list(found) == ["dev", "staging", "prod"]
