"""Child processes: the command line as a user's shell starts it, and how they end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import quick_spark
from lakes import NOW
from tidemill.config.settings import iso

PATIENCE = 120.0


@dataclass(frozen=True)
class Child:
    """A process that runs, or ran; what it prints goes to files, so nobody waits for its JVM."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def ended(self) -> int:
        """Wait for its end and return its exit code, negative for a signal."""
        return self.process.wait(PATIENCE)

    def until(self, there: Callable[[], bool]) -> None:
        """Wait until something is there; fail when the process ends before it."""
        deadline = time.monotonic() + PATIENCE
        while not there():
            assert self.process.poll() is None, f"it ended: {self.err.read_text()}"
            assert time.monotonic() < deadline, f"nothing in {PATIENCE} s: {self.out.read_text()}"
            time.sleep(0.02)  # another process' files can only be looked at again


@dataclass
class Children:
    """Starts child processes whose clock stands at NOW, with a Spark set for small data."""

    folder: Path
    started: int = 0

    def tidemill(self, *words: object, **environment: str) -> Child:
        """Start `tidemill` with these words."""
        return self.python("-m", "tidemill.cli", *words, **environment)

    def python(self, *words: object, **environment: str) -> Child:
        """Start this Python, in a process group of its own."""
        self.started += 1
        out, err = (self.folder / f"child{self.started}.{end}" for end in ("out", "err"))
        surroundings = {
            **os.environ,
            "TIDEMILL_NOW": iso(NOW),
            **quick_spark.environment(self.folder),
            **environment,
        }
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, *map(str, words)],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                env=surroundings,
                start_new_session=True,
            )
        return Child(process, out, err)
