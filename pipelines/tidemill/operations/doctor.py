"""What is missing on this machine, and the cure for each: `tidemill doctor`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

import psutil

from tidemill.lake.session import class_archive, ivy, local_machine, session, sizing
from tidemill.lake.session.local_machine import Check

__all__ = ["Check", "checks"]

# What a run that loads Spark's classes brings to gold.
_EVENT = (
    '{{"event_id": "e", "profile_id": "p", "gti": "g", "event_type": "view", '
    '"event_timestamp": "{at}"}}\n'
)
PYTHON = (3, 10)
DISK_GB = 1
MEMORY_GB = 2
GB = 1024**3


def checks(root: Path) -> list[Check]:
    """Return one check per requirement, in the order in which to repair them.

    `root` is the lake's folder, which need not exist yet and is not made. No session is started;
    the network is asked only when the Delta jars are not there.
    """
    return [
        _python(),
        local_machine.java(),
        local_machine.spark(),
        local_machine.delta(),
        local_machine.package("pandas", "2."),
        _jars(local_machine.ivy_folder()),
        _class_archive(),
        _writable(root),
        _disk(root),
        _memory(),
        _session(),
    ]


def _python() -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    expected = "Python {}.{} or newer".format(*PYTHON)
    ok = sys.version_info >= PYTHON
    return Check("python", ok, version, expected, "" if ok else f"install {expected}")


def _jars(cache: Path) -> Check:
    """Return whether the jars that go with the installed delta-spark are there, or can be had."""
    version = local_machine.installed("delta-spark") or f"{local_machine.DELTA}.0"
    names = [f"delta-spark_{local_machine.SPARK}_2.13", "delta-storage"]
    jars = [cache / "jars" / f"io.delta_{name}-{version}.jar" for name in names]
    expected = f"the jars of Delta {version}, or a network to fetch them"
    if all(jar.exists() for jar in jars):
        return Check("jars", True, str(cache), expected)
    if _resolvable(f"io.delta {names[1]} {version}"):
        return Check("jars", True, "not here; the first start fetches about 190 MB", expected)
    fix = f"connect to the network for the first start, or copy {cache} from a machine that has it"
    return Check(
        "jars", False, f"not in {cache}, and the repository does not answer", expected, fix
    )


def _class_archive() -> Check:
    """Return what the class archive is, which nothing needs."""
    expected = "an archive of Spark's classes, or none: a session then takes longer to start"
    archive = session.class_archive()
    if archive is not None and archive.is_file():
        return Check("classes", True, f"{archive} ({archive.stat().st_size >> 20} MB)", expected)
    return Check("classes", True, "no archive; `tidemill doctor --warm` makes it", expected)


def quicken() -> bool:
    """Have later sessions start sooner: fetch the jars, and make the class archive, unless they are
    there. Return whether it is there; SetupError without Java, packages or jars."""
    if session.class_archive() is None:
        session.local_session(driver_memory="512m").stop()  # fetches the jars
    archive = session.class_archive()
    if archive is None or archive.is_file():
        return archive is not None
    with tempfile.TemporaryDirectory(prefix="tidemill-") as folder:
        place = Path(folder)
        (place / "events").mkdir()
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        (place / "events" / "one.json").write_text(_EVENT.format(at=at), encoding="utf-8")
        run = ["run", "engagement", "--source", "files", "--input", str(place / "events"), "--once"]
        command = [sys.executable, "-m", "tidemill.cli", *run, "--root", str(place / "lake")]
        return class_archive.make(archive, command) > 0


def _resolvable(dependency: str) -> bool:
    """Return whether Ivy, as Spark brings and would use it, finds one small jar."""
    with tempfile.TemporaryDirectory(prefix="tidemill-") as cache:
        answer = ivy.run(["-cache", cache, "-dependency", *dependency.split()], limit=60)
    return answer is not None and answer.returncode == 0


def _writable(root: Path) -> Check:
    expected = f"a folder at {root} that can be written"
    parent = _existing(root)
    try:
        with tempfile.TemporaryFile(dir=parent):
            return Check("folder", True, f"{parent} can be written", expected)
    except OSError as error:
        problem = f"{parent} cannot be written ({error.strerror})"
        return Check("folder", False, problem, expected, "choose another folder with --root")


def _disk(root: Path) -> Check:
    free = shutil.disk_usage(_existing(root)).free
    ok = free >= DISK_GB * GB
    fix = "" if ok else "free some space, or choose another disk with --root"
    return Check("disk", ok, f"{free / GB:.1f} GB free", f"at least {DISK_GB} GB free", fix)


def _memory() -> Check:
    available = psutil.virtual_memory().available
    ok = available >= MEMORY_GB * GB
    expected = f"at least {MEMORY_GB} GB available"
    fix = "" if ok else "close other programs, or use a machine with more memory"
    return Check("memory", ok, f"{available / GB:.1f} GB available", expected, fix)


def _session() -> Check:
    """Return what a local session takes of this machine, which is never wrong."""
    size, cores, gigabytes = sizing.here(), sizing.cores(), sizing.memory() / GB
    found = (
        f"{size.tasks} task{'s' * (size.tasks != 1)} at a time, {size.shuffle_partitions} shuffle "
        f"partitions, {size.driver_memory} for the driver"
    )
    return Check("session", True, found, f"what fits {cores} cores and {gigabytes:.0f} GB")


def _existing(root: Path) -> Path:
    """Return the folder itself, or its nearest parent that exists."""
    path = root.absolute()
    return next(folder for folder in (path, *path.parents) if folder.exists())
