"""What was really answered, for a later audit: one JSON line for each view of each request.

    {"at": "2026-11-21T10:05:12.300000Z", ... the answer, as documents.ViewAnswer has it ...}

Off unless a file is named: it holds keys, so the file is readable by its owner alone. A thread
writes; requests never wait for the disk. What does not fit into the queue is counted, not written.
A file that is full is renamed to `<name>.1`, the one before it to `<name>.2` ...
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from tidemill.config.settings import exact
from tidemill.errors import UsageError
from tidemill.online.answers import wire_format

log = logging.getLogger(__name__)
WAITING = 50_000  # answered keys that may wait for the disk


class ResponseLog:
    """An append-only file of JSON lines, of at most `files` times `file_bytes`."""

    def __init__(
        self,
        path: Path,
        *,
        file_bytes: int = 64 << 20,
        files: int = 8,
        on_dropped: Callable[[], None] = lambda: None,
    ):
        """Open the file; UsageError where it cannot be written."""
        self._path, self._file_bytes, self._files = path, file_bytes, files
        self._on_dropped = on_dropped
        try:
            self._file = self._opened()
        except OSError as error:
            raise UsageError(
                f"cannot be written: {error.strerror}", where=str(path), expected="a file of yours"
            ) from error
        self._lines: queue.Queue[Any] = queue.Queue()
        self._waiting = 0  # changed by two threads: it may be off by a few
        self._thread = threading.Thread(target=self._write, name="response log", daemon=True)
        self._thread.start()

    def add(self, answer: Mapping[str, Any], at: datetime) -> None:
        """Have the answer of one view written soon."""
        if self._waiting > WAITING:
            self._on_dropped()
            return
        self._waiting += _keys(answer)
        self._lines.put({"at": exact(at), **answer})

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._lines.put(None)
        self._thread.join()
        self._file.close()

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            self._waiting -= _keys(line)
            try:
                self._append(wire_format.as_json(line) + b"\n")
                if self._lines.empty():
                    self._file.flush()
            except Exception as error:  # the disk is full: answers go on, and the loss is counted
                log.error("the response log lost a line: %s", type(error).__name__)
                self._on_dropped()

    def _append(self, line: bytes) -> None:
        if self._file.tell() and self._file.tell() + len(line) > self._file_bytes:
            self._rotate()
        self._file.write(line)

    def _rotate(self) -> None:
        self._file.close()
        for place in range(self._files - 1, 0, -1):
            newer = self._numbered(place - 1) if place > 1 else self._path
            if newer.exists():
                newer.replace(self._numbered(place))
        if self._files == 1:
            self._path.unlink()
        self._file = self._opened()

    def _numbered(self, place: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{place}")

    def _opened(self) -> BinaryIO:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "ab")


def _keys(answer: Mapping[str, Any]) -> int:
    return len(answer.get("rows", ()))
