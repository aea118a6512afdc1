"""One writer on a folder lake: an operating-system lock that names its holder.

A local folder is not safe between processes. The lock itself is the system's (`flock`), free the
moment its process dies; the file's text names the process and its JVM, because a JVM outlives a
killed Python by a moment and could still commit: the next holder waits until both are gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import psutil

from tidemill.config.settings import Place
from tidemill.errors import LakeError, LockedError

NAME = "_tidemill.lock"
# Folders in a lake's, each with a lock of its own: of who writes beside the holder of the lake.
GATE = "_quality"  # the gate, with its docs where no other place is named
RECOMPUTE = "_recompute"
_POLL = 0.1


@contextlib.contextmanager
def hold(root: Path, command: str, wait: float) -> Iterator[WriteLock]:
    """Hold the lake at `root`, waiting `wait` seconds for another holder; else LockedError names
    it."""
    try:
        file = (root / NAME).open("a+", encoding="utf-8")
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise LakeError(message, where=str(root), expected="a folder you may write to") from error
    with file:
        deadline = time.monotonic() + wait
        _acquire(file, root, wait, deadline)
        _outlive(_read(file), root, wait, deadline)
        lock = WriteLock(file, command)
        lock.name_holder()
        try:
            yield lock
        finally:
            file.truncate(0)


def gate_folder(place: Place) -> Path | None:
    """Return the gate's own folder in a lake's folder; None for a catalog."""
    root = place.folder
    return root and root / GATE


@contextlib.contextmanager
def hold_apart(place: Place, folder: str, command: str, wait: float) -> Iterator[None]:
    """Hold what is written beside whoever holds the lake: the gate's results, or recomputed days; a
    catalog needs no lock. LockedError as of `hold`."""
    if place.folder is None:
        yield
        return
    own = place.folder / folder
    own.mkdir(exist_ok=True)
    with hold(own, command, wait) as held:
        held.name_holder()
        yield


def holder(root: Path) -> str | None:
    """Return who holds the lake, as far as its lock file tells: the command and its process."""
    try:
        with (root / NAME).open(encoding="utf-8") as file:
            fields = _read(file)
    except OSError:
        return None
    process = fields.get("process")
    return (
        f"{fields['command']} (process {process['pid']})" if process and _alive(process) else None
    )


class WriteLock:
    """The lock while it is held."""

    def __init__(self, file: TextIO, command: str):
        """Hold the open, locked file."""
        self._file = file
        self._command = command

    def name_holder(self) -> None:
        """Write this process, and its JVM once it has one, into the lock file."""
        me = psutil.Process()
        jvm = next((c for c in me.children(recursive=True) if "java" in c.name()), None)
        holder = {"command": self._command, "process": _named(me), "jvm": jvm and _named(jvm)}
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps(holder) + "\n")
        self._file.flush()


def _named(process: psutil.Process) -> dict[str, float]:
    """Return what tells a process from a later one with the same number."""
    return {"pid": process.pid, "started": process.create_time()}


def _acquire(file: TextIO, root: Path, wait: float, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise _locked(_read(file), root, wait) from None
            time.sleep(_POLL)  # flock has no wait with a limit


def _outlive(holder: Mapping[str, Any], root: Path, wait: float, deadline: float) -> None:
    """Wait until the last holder's processes are gone, its JVM too."""
    own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    named = [holder.get("process"), holder.get("jvm")]
    others = [p for p in named if p and p["pid"] not in own]
    while any(_alive(process) for process in others):
        if time.monotonic() >= deadline:
            raise _locked(holder, root, wait)
        time.sleep(_POLL)  # not our child, so it cannot be waited for


def _alive(process: Mapping[str, float]) -> bool:
    try:
        live_process = psutil.Process(int(process["pid"]))
        zombie = live_process.status() == psutil.STATUS_ZOMBIE
        return abs(live_process.create_time() - process["started"]) < 1 and not zombie
    except psutil.Error:
        return False


def _read(file: TextIO) -> Mapping[str, Any]:
    file.seek(0)
    try:
        holder = json.loads(file.read() or "{}")
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _locked(holder: Mapping[str, Any], root: Path, wait: float) -> LockedError:
    pid = (holder.get("process") or {}).get("pid", "unknown")
    command = holder.get("command", "another writer")
    return LockedError(
        f"{command!r} (process {pid}) writes to this lake; waited {wait:g} s",
        where=str(root),
        expected="one writer at a time: stop it, or wait longer with --wait",
    )
