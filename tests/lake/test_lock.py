"""One writer at a time, whoever dies: the lock names its holder and outlives nobody."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from children import Child, Children
from command_line import call
from lakes import Lakes, at
from runs import write_file
from tidemill.config.settings import Place
from tidemill.errors import LockedError
from tidemill.lake import lock
from tidemill.lake.catalog import prepare_root

HOLD = """
import sys
from pathlib import Path
from tidemill.lake import lock
with lock.hold(Path(sys.argv[1]), "tidemill run engagement", wait=0):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of a lake, with no table in it yet."""
    prepare_root(Place(tmp_path / "lake"))
    return tmp_path / "lake"


def holder(children: Children, root: Path) -> Child:
    child = children.python("-c", HOLD, root)
    child.until(lambda: "held" in child.out.read_text())
    return child


@pytest.fixture
def stranger() -> Iterator[psutil.Process]:
    """A process that is no child of this one, as a killed session's JVM is none of the next."""
    started = subprocess.run(
        ["sh", "-c", "sleep 120 >/dev/null 2>&1 & echo $!"], capture_output=True, check=True
    )
    process = psutil.Process(int(started.stdout))
    yield process
    if process.is_running():
        process.kill()


def left_behind(root: Path, jvm: psutil.Process, *, started: float | None = None) -> None:
    """The lock file of a holder that was killed, and the JVM it named."""
    named = {"pid": jvm.pid, "started": started or jvm.create_time()}
    gone = {"pid": jvm.pid, "started": 1.0}
    text = json.dumps({"command": "tidemill run old", "process": gone, "jvm": named})
    (root / lock.NAME).write_text(text)


@pytest.mark.parametrize("command", ["run", "refresh", "reconcile --repair", "rebuild"])
def test_a_second_writer_exits_2_and_names_the_first(
    root: Path, children: Children, command: str, tmp_path: Path
) -> None:
    first = holder(children, root)
    more: list[object]
    name, *more = command.split()
    if name == "run":
        write_file(tmp_path / "in", "1.jsonl", ["{}"])
        more += ["--source", "files", "--input", tmp_path / "in", "--once"]
    if name == "rebuild":
        more += ["--from", "bronze"]
    started = time.monotonic()
    answer = call(name, "engagement", *more, "--root", root, "--wait", "1s", "--json")
    assert time.monotonic() - started >= 1
    assert answer.code == 2
    assert answer.error == {
        "kind": "locked",
        "message": f"'tidemill run engagement' (process {first.process.pid}) writes to this lake; "
        "waited 1 s",
        "where": str(root),
        "expected": "one writer at a time: stop it, or wait longer with --wait",
    }


def test_killing_the_holder_frees_the_lake(root: Path, children: Children) -> None:
    first = holder(children, root)
    first.process.send_signal(signal.SIGKILL)
    assert first.ended() == -signal.SIGKILL
    assert "tidemill run engagement" in (root / lock.NAME).read_text()
    with lock.hold(root, "next", wait=0):
        assert named(root)["command"] == "next"
        assert named(root)["process"]["pid"] == os.getpid()
    assert (root / lock.NAME).read_text() == ""


def named(root: Path) -> dict:
    return json.loads((root / lock.NAME).read_text())


def test_a_waiting_writer_goes_on_when_the_holder_ends(root: Path, children: Children) -> None:
    first = holder(children, root)
    later = threading.Timer(0.5, first.process.communicate)  # ends its input, so it lets go
    later.start()
    with lock.hold(root, "next", wait=60):
        assert first.ended() == 0
    later.join()


def test_the_next_holder_waits_for_the_jvm_of_the_last(
    root: Path, stranger: psutil.Process
) -> None:
    left_behind(root, stranger)
    with (
        pytest.raises(LockedError, match=r"'tidemill run old' .* waited 0.3 s"),
        lock.hold(root, "next", wait=0.3),
    ):
        pass
    threading.Timer(0.5, stranger.kill).start()
    with lock.hold(root, "next", wait=60):
        assert not stranger.is_running() or stranger.status() == psutil.STATUS_ZOMBIE


def test_a_refused_writer_leaves_the_name_of_the_last(root: Path, stranger: psutil.Process) -> None:
    """Else the third writer would not wait for the JVM that the second one was refused for."""
    left_behind(root, stranger)
    for _ in range(2):
        with pytest.raises(LockedError), lock.hold(root, "next", wait=0):
            pass


def test_a_number_used_again_by_another_process_does_not_block(
    root: Path, stranger: psutil.Process
) -> None:
    left_behind(root, stranger, started=stranger.create_time() - 60)
    with lock.hold(root, "next", wait=0):
        assert named(root)["command"] == "next"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"process": null, "jvm": null}', "\0"])
def test_a_lock_file_that_names_nobody_does_not_block(root: Path, text: str) -> None:
    (root / lock.NAME).write_text(text)
    with lock.hold(root, "next", wait=0):
        assert named(root)["command"] == "next"


def test_readers_take_no_lock(lakes: Lakes, children: Children) -> None:
    lake = lakes.new()
    lake.feed([("a", "p", "g", "view", at("10:00"))])
    root = lake.lake.place.root
    assert root
    holder(children, root)
    before = (root / lock.NAME).read_text()
    asked = call("query", "SELECT count(*) AS n FROM engagement_features", "--root", root, "--json")
    assert (asked.code, asked.json["rows"]) == (0, [[1]])
    compared = call("reconcile", "engagement", "--root", root, "--json")
    assert (compared.code, compared.json["different"]) == (0, 0)
    assert (root / lock.NAME).read_text() == before
