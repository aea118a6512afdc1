"""Checkpoints: each says whose it is, so that none is ever used for something else.

A checkpoint remembers which records a query has read; the tables remember which it has written.
Neither may be paired with a stranger: the same records would count twice, or never.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemill.errors import CheckpointError

FILE = "_tidemill.json"


@dataclass(frozen=True)
class Offset:
    """How far a query has read a Delta table: every version below `version`, and when `within` a
    part of that one."""

    version: int
    within: bool

    def is_past(self, version: int) -> bool:
        """Return whether that version was read, and none behind it in part."""
        return self.version > version and not self.within


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of one query, in one folder; `way_out` says what to do when it is lost."""

    query: str
    folder: Path
    way_out: str

    def identity(self) -> Mapping[str, Any]:
        """Return what the checkpoint says it belongs to; empty when it says nothing."""
        try:
            fields = json.loads((self.folder / FILE).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return {}
        return fields if isinstance(fields, dict) else {}

    @property
    def has_read(self) -> bool:
        """Whether the query has begun a batch."""
        return any(self.folder.glob("offsets/[0-9]*"))

    @property
    def query_id(self) -> str:
        """Spark's name for the query, by which Delta knows its batches; empty when it is lost."""
        try:
            return str(json.loads((self.folder / "metadata").read_text(encoding="utf-8"))["id"])
        except (FileNotFoundError, ValueError, KeyError):
            return ""

    def planned(self) -> int:
        """Return the newest batch that the query has begun, -1 for none."""
        return max((int(path.name) for path in self.folder.glob("offsets/[0-9]*")), default=-1)

    def claim(
        self,
        identity: Mapping[str, Any],
        written: Callable[[], bool],
        newest: Callable[[], int] = lambda: -1,
    ) -> None:
        """Take the checkpoint for `identity`; refuse a stranger's, a lost one, one rolled back.

        `written` tells whether the query's tables hold anything that the checkpoint should know of;
        it is asked only when the checkpoint has read nothing yet. `newest` is the newest batch that
        they hold: a batch is planned in the checkpoint before it is written.
        """
        owner, has_read = self.identity(), self.has_read
        if (owner or has_read) and dict(owner) != dict(identity):
            raise self._stranger(owner, identity)
        lost = has_read and not self.query_id
        if lost or (not has_read and written()):
            raise self._unusable("is lost, but its tables hold rows it has written")
        if has_read and (batch := newest()) > (planned := self.planned()):
            raise self._unusable(
                f"was rolled back: it knows batches up to {planned}, its tables hold batch {batch}"
            )
        if not owner:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / FILE).write_text(json.dumps(identity, indent=1) + "\n", encoding="utf-8")

    def read_to(self, batch: int | None = None) -> int | None:
        """Return the version of the Delta table from which the query will read on, or read on after
        a batch; None when it has not begun, or does not tell of the batch any more."""
        offset = self.offset(batch)
        return offset.version if offset else None

    def offset(self, batch: int | None = None) -> Offset | None:
        """Return how far the query has read, or had at the end of a batch; None as in `read_to`."""
        fields = self._offset(self.finished() if batch is None else batch)
        if fields is None:
            return None
        return Offset(*_position(fields))

    def _offset(self, batch: int) -> Mapping[str, Any] | None:
        """Return where a batch ends in the Delta table that the query reads, of one that reads it
        twice, as a join does, where the reader is that has come less far."""
        ends = [json.loads(text) for text in self._offset_texts(batch)]
        return min(ends, key=_position, default=None)

    def offset_text(self, batch: int) -> str | None:
        """Return where a batch ends in what the query reads, as its source writes it; None for a
        batch that the checkpoint does not tell of."""
        return next(iter(self._offset_texts(batch)[-1:]), None)

    def _offset_texts(self, batch: int) -> list[str]:
        """Return where a batch ends in each source; a source of which nothing came says `-`."""
        try:
            text = (self.folder / "offsets" / str(batch)).read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [line for line in text.splitlines()[2:] if line != "-"]

    def watermark(self) -> int | None:
        """Return the watermark that the newest finished batch went by, in milliseconds since 1970;
        None without one."""
        try:
            text = (self.folder / "offsets" / str(self.finished())).read_text(encoding="utf-8")
            return int(json.loads(text.splitlines()[1])["batchWatermarkMs"])
        except (FileNotFoundError, IndexError, ValueError, KeyError):
            return None

    def finished(self) -> int:
        """Return the newest batch that the query has finished, -1 for none."""
        return max((int(path.name) for path in self.folder.glob("commits/[0-9]*")), default=-1)

    def read_before(self, batch: int) -> int | None:
        """Return the version of the Delta table before which a batch, and those before it, have
        read every row, and no row from it on; None when the batch ends within a version, or the
        checkpoint does not tell of it any more."""
        offset = self._offset(batch)
        if offset is None or offset.get("isStartingVersion") or int(offset.get("index", 0)) >= 0:
            return None
        return int(offset["reservoirVersion"])

    def forget(self) -> None:
        """Remove the checkpoint; only a rebuild may, which makes the tables again too.

        It goes by one rename: half a checkpoint would be read on from where it seems to stand.
        """
        if self.folder.exists():
            self.folder.rename(self.folder.with_name(f".{self.folder.name}.{uuid.uuid4().hex}"))
        for gone in self.folder.parent.glob(f".{self.folder.name}.*"):
            shutil.rmtree(gone, ignore_errors=True)

    def _unusable(self, why: str) -> CheckpointError:
        message = f"the checkpoint of {self.query} {why}"
        return CheckpointError(message, where=str(self.folder), expected=self.way_out)

    def _stranger(self, owner: Mapping[str, Any], wanted: Mapping[str, Any]) -> CheckpointError:
        other = {k: owner.get(k) for k in {**owner, **wanted} if owner.get(k) != wanted.get(k)}
        mine = {k: wanted.get(k) for k in other}
        theirs = other if owner else "something else"
        return CheckpointError(
            f"the checkpoint of {self.query} belongs to {theirs}, not to {mine}",
            where=str(self.folder),
            expected=f"its own checkpoint; {self.way_out}",
        )


def _position(fields: Mapping[str, Any]) -> tuple[int, bool]:
    """Return how far an offset has come in a Delta table: the version, and whether within it."""
    return int(fields["reservoirVersion"]), int(fields.get("index", -1)) >= 0
