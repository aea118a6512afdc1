"""Checkpoints: each says whose it is, so that none is ever used for something else.

A checkpoint remembers which records a query has read; the tables remember which it has written.
Neither may be paired with a stranger: the same records would count twice, or never.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemill.errors import CheckpointError

FILE = "_tidemill.json"


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of one query, in one folder; `way_out` says what to do when it is lost."""

    query: str
    folder: Path
    way_out: str

    def identity(self) -> Mapping[str, Any]:
        """Yield what the checkpoint says it belongs to; empty when it says nothing."""
        try:
            found = json.loads((self.folder / FILE).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def has_read(self) -> bool:
        """Whether the query has begun a batch."""
        return any(self.folder.glob("offsets/[0-9]*"))

    def claim(self, identity: Mapping[str, Any], written: Callable[[], bool]) -> None:
        """Take the checkpoint for `identity`; refuse a stranger's, and a lost one.

        `written` tells whether the query's tables hold anything that the checkpoint should know of;
        it is asked only when the checkpoint has read nothing yet.
        """
        found, has_read = self.identity(), self.has_read
        if (found or has_read) and dict(found) != dict(identity):
            raise self._stranger(found, identity)
        if not has_read and written():
            raise CheckpointError(
                f"the checkpoint of {self.query} is lost, but its tables hold rows it has written",
                where=str(self.folder),
                expected=self.way_out,
            )
        if not found:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / FILE).write_text(json.dumps(identity, indent=1) + "\n", encoding="utf-8")

    def read_to(self, batch: int | None = None) -> int | None:
        """Yield the version of the Delta table from which the query will read on, or read on after
        a batch; None when it has not begun, or does not tell of the batch any more."""
        if batch is None:
            done = sorted(int(path.name) for path in self.folder.glob("commits/[0-9]*"))
            if not done:
                return None
            batch = done[-1]
        try:
            text = (self.folder / "offsets" / str(batch)).read_text(encoding="utf-8")
            return int(json.loads(text.splitlines()[-1])["reservoirVersion"])
        except FileNotFoundError:
            return None

    def forget(self) -> None:
        """Remove the checkpoint; only a rebuild may, which makes the tables again too."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _stranger(self, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> CheckpointError:
        other = {k: found.get(k) for k in {**found, **wanted} if found.get(k) != wanted.get(k)}
        mine = {k: wanted.get(k) for k in other}
        theirs = other if found else "something else"
        return CheckpointError(
            f"the checkpoint of {self.query} belongs to {theirs}, not to {mine}",
            where=str(self.folder),
            expected=f"its own checkpoint; {self.way_out}",
        )
