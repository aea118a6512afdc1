"""A shard while a batch is planned: what was read of it, and whether it rests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from tidemill.sources.kinesis.service import KinesisRecord, Page
from tidemill.sources.kinesis.shard_cursor import ShardCursor
from tidemill.sources.kinesis.shard_offset import Position

LONG_AGO = datetime.min.replace(tzinfo=timezone.utc)


@dataclass
class OpenShard:
    """A shard that is being read for a batch."""

    cursor: ShardCursor
    before: Position
    from_oldest: bool
    count: int = 0
    last: KinesisRecord | None = None
    kept: list[KinesisRecord] = field(default_factory=list)
    behind: int = 0
    at_tip: bool = False
    is_cut: bool = False  # by `until`

    @property
    def rests(self) -> bool:
        """Whether there is nothing more to read of it now."""
        return self.at_tip or self.is_cut or self.cursor.ended

    @property
    def read_to(self) -> datetime:
        """Up to when the shard is read by now."""
        return self.last.arrived if self.last else self.before.read_to or LONG_AGO

    def read(self, most: int) -> Page:
        """Return the next page, of which nothing is taken yet."""
        page = self.cursor.read(most)
        self.behind = page.behind
        # Behind by 0 ms is not yet at the end: of records that came within one, half may be read.
        self.at_tip = not page.behind and len(page.records) < most and not self.cursor.ended
        return page

    def take(self, records: Sequence[KinesisRecord], of: Page, *, keeps: bool) -> int:
        """Take the first records of the page that was read, and go back to the last one; return
        their bytes."""
        if records:
            self.last, self.count = records[-1], self.count + len(records)
        if keeps:
            self.kept += records
        if len(records) < len(of.records):
            self.at_tip = False
            self.cursor.back_to(self.last.sequence if self.last else self._first)
        return sum(len(record.data) for record in records)

    def position(self, now: datetime) -> Position:
        """Return where the shard stands after the batch."""
        read_to, ended = now if self.at_tip else self.before.read_to, self.cursor.ended
        if self.last is None:
            return replace(self.before, read_to=read_to, ended=ended)
        read_to = now if self.at_tip else self.last.arrived
        return Position(self.last.sequence, read_to, self.count, ended, self.from_oldest)

    @property
    def _first(self) -> str | None:
        return None if self.from_oldest else self.before.after
