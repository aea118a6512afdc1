"""With a part of the machine missing, set-up says one sentence with the cure, and exits 2.

The scripts run in a copy of the project, with a PATH that holds a few tools and stubs.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.setup

ROOT = Path(__file__).parents[2]
TOOLS = "awk bash cat cksum df dirname env grep make mkdir sed sh tail".split()
CLOSED = "127.0.0.1:9"
JAVA_17 = "17.0.15"
CURE = "install it with `apt-get install openjdk-17-jre-headless` (Debian, Ubuntu)"


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """The only folder on PATH: tools, this Python as python3, no Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        (folder / name).symlink_to(shutil.which(name) or pytest.skip(f"no {name} here"))
    stub(folder / "python3", f'exec "{sys._base_executable}" "$@"')
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_project(tmp_path / "project")


def copy_project(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "requirements-build.lock"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    session = Path("pipelines", "tidemill", "lake", "session")
    (folder / session).mkdir(parents=True)
    shutil.copy(ROOT / session / "local_machine.py", folder / session)
    return folder


def stub(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def stub_java(folder: Path, version: str) -> None:
    stub(folder / "java", f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")


def run(
    command: list[str],
    path: Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={"PATH": str(path), "HOME": str(cwd), "TMPDIR": str(path.parent), **(env or {})},
        preexec_fn=before,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def assert_one_sentence(answer: subprocess.CompletedProcess[str], *parts: str) -> None:
    """The last sentence names what is wrong; beside progress there is only make's own line."""
    lines = [line for line in answer.stderr.splitlines() if not line.startswith("make: ***")]
    assert answer.returncode == 2, answer
    assert not [line for line in lines if not line.startswith("setup: ")], answer.stderr
    assert all(part in lines[-1] for part in parts), lines[-1]


def test_no_java(project: Path, bin_folder: Path) -> None:
    answer = run(["make", "demo"], bin_folder, project)
    assert_one_sentence(answer, "Java 17 or newer is needed", "no java on PATH", CURE)
    assert not (project / ".venv").exists()


@pytest.mark.parametrize("version", ["11.0.20", "1.8.0_392"])
def test_old_java(project: Path, bin_folder: Path, version: str) -> None:
    stub_java(bin_folder, version)
    answer = run(["make", "test"], bin_folder, project)
    assert_one_sentence(answer, f"found Java {version} ({bin_folder}/java)", CURE)
    assert not (project / ".venv").exists()


def test_java_that_does_not_run(project: Path, bin_folder: Path) -> None:
    stub(bin_folder / "java", "echo 'Unable to locate a Java Runtime.' >&2; exit 1")
    answer = run(["make", "setup"], bin_folder, project)
    assert_one_sentence(answer, f"{bin_folder}/java does not run", CURE)


def test_java_home_without_java(project: Path, bin_folder: Path) -> None:
    stub_java(bin_folder, JAVA_17)
    answer = run(["make", "setup"], bin_folder, project, {"JAVA_HOME": "/nowhere"})
    assert_one_sentence(answer, "no bin/java in JAVA_HOME (/nowhere)", CURE)


@pytest.mark.parametrize(
    "body",
    [
        f'exec "{sys.executable}" -c "import sys; sys.version_info = (3, 9, 18); $2"',
        "exit 127",
    ],
    ids=["only 3.9", "none"],
)
def test_no_python(project: Path, bin_folder: Path, body: str) -> None:
    stub(bin_folder / "python3", body)
    answer = run(["make", "demo"], bin_folder, project)
    assert_one_sentence(answer, "no Python 3.10 or newer found on PATH", "PYTHON=/path/to/python3")


def test_no_network_for_packages(project: Path, bin_folder: Path) -> None:
    stub_java(bin_folder, JAVA_17)
    nowhere = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": f"http://{CLOSED}/simple",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_RETRIES": "0",
    }
    answer = run(["make", "setup"], bin_folder, project, nowhere)
    assert_one_sentence(answer, "the packages cannot be downloaded; check the network")


def test_full_disk_is_seen_before_anything_is_downloaded(project: Path, bin_folder: Path) -> None:
    stub_java(bin_folder, JAVA_17)
    (bin_folder / "df").unlink()
    stub(bin_folder / "df", "echo 'Filesystem 1M Used Available'; echo 'disk 100 88 12 88% /'")
    answer = run(["make", "setup"], bin_folder, project)
    assert_one_sentence(answer, f"the disk of {project} is full (12 MB free); free about 3000 MB")


def test_disk_that_fills_up(project: Path, bin_folder: Path) -> None:
    stub_java(bin_folder, JAVA_17)

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64_000, 64_000))

    answer = run(["make", "setup"], bin_folder, project, before=small_files)
    assert_one_sentence(answer, "the disk is full", "free about 3000 MB and run it again")


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A copy of the project that cannot be written, by root neither."""
    folder = tmp_path / "project"
    if os.geteuid():
        copy_project(folder).chmod(0o555)
        yield folder
        folder.chmod(0o755)
        return
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=20m", "tidemill", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("root may not mount a file system here")
    copy_project(folder)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_read_only_folder(read_only: Path, bin_folder: Path) -> None:
    stub_java(bin_folder, JAVA_17)
    answer = run(["make", "demo"], bin_folder, read_only)
    assert_one_sentence(answer, f"the folder {read_only} cannot be written", "a folder of your own")


def start_session(path: Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Start a session as set-up does, by this environment's Python and the checkout's package."""
    command = "import sys; from tidemill.lake.session.session import main; sys.exit(main())"
    env = {"PYTHONPATH": str(ROOT / "pipelines"), **env}
    return run([sys.executable, "-c", command], path, cwd, env)


def test_session_without_java(bin_folder: Path, tmp_path: Path) -> None:
    answer = start_session(bin_folder, tmp_path)
    assert answer.returncode == 2
    assert answer.stderr.startswith("error: java: no java on PATH, and JAVA_HOME is not set; ")
    assert CURE in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_session_with_another_spark(bin_folder: Path, tmp_path: Path) -> None:
    stub_java(bin_folder, JAVA_17)
    answer = start_session(bin_folder, tmp_path, SPARK_HOME="/opt/spark-3")
    assert answer.returncode == 2
    assert "SPARK_HOME is /opt/spark-3, which is not Spark 4.2.0; unset" in answer.stderr


def test_session_without_network_for_jars(bin_folder: Path, tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("no java here")
    host, port = CLOSED.split(":")
    closed = f"-Dhttps.proxyHost={host} -Dhttps.proxyPort={port} -Duser.home={tmp_path}"
    path = Path(f"{bin_folder}:{os.environ['PATH']}")
    answer = start_session(
        path, tmp_path, JAVA_TOOL_OPTIONS=closed, TMPDIR=str(tmp_path), **java_home()
    )
    assert answer.returncode == 2
    assert f"the Delta jars are not in {tmp_path}/.ivy2.5.2 and cannot be fetched" in answer.stderr
    assert "connect to the network once (about 190 MB)" in answer.stderr
    assert answer.stderr.count("\n") == 1


def java_home() -> dict[str, str]:
    return {"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}
