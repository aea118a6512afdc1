"""An archive of the classes that a local session loads, so that its JVM starts sooner.

    doctor --warm ──► a process that does a little of everything ──ends──► <cache>/<key>.jsa
    a later start ──► -XX:SharedArchiveFile=<cache>/<key>.jsa

Spark and Delta load some 20,000 classes before the first row is read; Java can map them from a file
instead of reading, checking and linking each (application class data sharing, JEP 350). The archive
holds for one Java, one set of jars on the class path and one set of flags, which are its key; what
was made for another is not taken, in silence. It is never a reason to fail: without one a session
starts as ever.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psutil

from tidemill.lake.session import local_machine

log = logging.getLogger(__name__)

MAKING = "TIDEMILL_CLASS_ARCHIVE"  # in whose environment it is, a session's JVM writes the file
LIMIT = 300.0  # seconds that the making may take
_QUIET = "-Xshare:auto -Xlog:disable -Xlog:all=warning:stderr -Xlog:cds=off -Xlog:cds+dynamic=off"


def options(jars: Sequence[Path], flags: str) -> str:
    """Return the JVM's options that take the archive for these jars and flags, or that write it
    where this process makes one; empty where there is none."""
    if making := os.environ.get(MAKING):
        return f"-XX:ArchiveClassesAtExit={making} {_QUIET}"
    archive = path(jars, flags)
    return f"-XX:SharedArchiveFile={archive} {_QUIET}" if archive and archive.is_file() else ""


def path(jars: Sequence[Path], flags: str) -> Path | None:
    """Return where the archive for these jars and flags is, or would be; None without a Java."""
    executable, _ = local_machine.java_executable()
    if executable is None:
        return None
    java = Path(executable).resolve()
    spark = local_machine.spark_jars()
    files = [java, java.parents[1] / "lib" / "modules", *jars, *sorted(spark.glob("*.jar"))]
    try:
        known = [(str(file), (stat := file.stat()).st_size, stat.st_mtime_ns) for file in files]
    except OSError:
        return None
    key = hashlib.sha256(json.dumps([flags, known]).encode()).hexdigest()[:16]
    return folder() / f"{key}.jsa"


def folder() -> Path:
    """Return the folder of the archives, in $XDG_CACHE_HOME or the home folder's `.cache`."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tidemill"


def make(archive: Path, command: Sequence[str]) -> int:
    """Make an archive of what the JVM of a command's process loads; return its bytes, 0 where it
    could not be made. Archives for earlier jars or another Java are removed."""
    new = archive.with_name(f".{archive.name}.{os.getpid()}")
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        _run(command, {**os.environ, MAKING: str(new)})
        new.replace(archive)
        for other in archive.parent.iterdir():
            if ".jsa" in other.name and other != archive:
                other.unlink(missing_ok=True)
        return archive.stat().st_size
    except (OSError, subprocess.SubprocessError) as error:
        log.info("no class archive: %s", error)
        new.unlink(missing_ok=True)
        return 0


def _run(command: Sequence[str], environment: dict[str, str]) -> None:
    """Run a command, and wait for the JVM that it leaves: it writes the archive as it ends."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment, stdin=quiet, stdout=quiet, stderr=quiet)
    started: set[psutil.Process] = set()
    waited = 0.0
    try:
        while process.poll() is None:
            if waited > LIMIT:
                raise subprocess.TimeoutExpired(command, LIMIT)
            started |= _children(process.pid)
            try:
                process.wait(0.5)
            except subprocess.TimeoutExpired:
                waited += 0.5
    finally:
        process.kill()
        _, left = psutil.wait_procs(started, timeout=max(LIMIT - waited, 1))
        for each in left:
            each.kill()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def _children(process: int) -> set[psutil.Process]:
    try:
        return set(psutil.Process(process).children(recursive=True))
    except psutil.Error:
        return set()
