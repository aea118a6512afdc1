"""What the benchmarks share: a folder, the machine, CPU and memory of this process and its JVM, and
the tables in the document."""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

import psutil

DOCS = Path(__file__).parents[1] / "docs"
DOCUMENT = DOCS / "benchmarks.md"
CURVES = DOCS / "curves"
LOAD = os.getloadavg()[0]  # before this program added to it
SAMPLE = 0.1  # seconds between two looks at the memory
MIB = 2**20


@contextmanager
def temporary(name: str) -> Iterator[Path]:
    """Yield a new folder, which is removed at the end, also of a program that SIGTERM stops."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    path = Path(tempfile.mkdtemp(prefix=f"tidemill-{name}-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


# -- the machine ---------------------------------------------------------------------------------


def machine(memory: str = "2g") -> str:
    """Return what ran it, with so much driver memory."""
    total = psutil.virtual_memory().total / 2**30
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'"(\d+)', java)
    return (
        f"{datetime.now(timezone.utc):%Y-%m-%d}; {os.cpu_count()} cores, {total:.0f} GB memory, "
        f"{platform.system()} {platform.machine()}; load before the run {LOAD:.1f}; "
        f"Python {platform.python_version()}, Java {found[1] if found else 'unknown'}, "
        f"Spark {version('pyspark')}, Delta {version('delta-spark')}, "
        f"DuckDB {version('duckdb')}; driver memory {memory.removesuffix('g')} GB."
    )


# -- CPU and memory ------------------------------------------------------------------------------


@dataclass
class Usage:
    """What this process and all its children took: CPU seconds, and the most resident memory in
    MiB, of all and of the JVM alone."""

    cpu: float = 0.0
    memory: float = 0.0
    jvm: float = 0.0


def tree() -> list[psutil.Process]:
    """Return this process and all its children: the JVM, and Spark's Python workers."""
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def took(work: Callable[[], object]) -> float:
    """Return the seconds that work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    """Add up user and system time, with that of children that have ended."""
    total = 0.0
    for process in processes:
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def resident(processes: Sequence[psutil.Process]) -> tuple[float, float]:
    """Return the resident memory in MiB, of all processes and of the JVM.

    Only the largest Java counts: the JVM starts small programs by forking, and for a moment its
    child looks as large as itself.
    """
    others, jvm = 0.0, 0.0
    for process in processes:
        with suppress(psutil.Error):
            size = process.memory_info().rss / MIB
            if process.name().startswith("java"):
                jvm = max(jvm, size)
            else:
                others += size
    return others + jvm, jvm


@contextmanager
def metered() -> Iterator[Usage]:
    """Yield what is used meanwhile; it is whole when the block ends."""
    found, done = Usage(), threading.Event()

    def watch() -> None:
        while not done.wait(SAMPLE):
            look()

    def look() -> None:
        all_, jvm = resident(tree())
        found.memory, found.jvm = max(found.memory, all_), max(found.jvm, jvm)

    before = cpu_seconds(tree())
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()
        found.cpu = cpu_seconds(tree()) - before
        look()


# -- tables --------------------------------------------------------------------------------------


def spread(values: Sequence[float], form: str) -> str:
    """Return `median (least to most)`."""
    middle, least, most = map(form.format, (statistics.median(values), min(values), max(values)))
    return middle if least == most else f"{middle} ({least} to {most})"


def wish(value: float, most: float | None) -> str:
    """Return a ratio beside its target, where it has one."""
    if most is None:
        return f"{value:.2f}x"
    verdict = "met" if value <= most else "missed"
    return f"{value:.2f}x; target at most {most:g}x: {verdict}"


def write(table: str, name: str) -> None:
    """Replace a named part of docs/benchmarks.md."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    text = DOCUMENT.read_text(encoding="utf-8")
    head, tail = text.split(begin)[0], text.split(end)[1]
    DOCUMENT.write_text(f"{head}{begin}{table}{end}{tail}", encoding="utf-8")


def say(text: str) -> None:
    """Tell how far a program is."""
    print(f"{datetime.now(timezone.utc):%H:%M:%S} {text}", file=sys.stderr, flush=True)
