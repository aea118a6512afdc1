"""The plan of a batch: how far each shard goes, found by reading it, as nothing else tells.

Kinesis has no question for its newest sequence number. So the plan reads the records, a page of
each shard in turn, until a limit, the newest record or the end of the shard; the last sequence
number that it saw is where the batch ends. The records are kept for the batch's tasks where they
are few (MOST_KEPT); the tasks of a larger batch read them again (decision 0060).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate

from tidemill.errors import QueryError
from tidemill.sources.kinesis.open_shard import OpenShard
from tidemill.sources.kinesis.refusals import place_of
from tidemill.sources.kinesis.retention import Retention
from tidemill.sources.kinesis.service import (
    PAGE_RECORDS,
    KinesisRecord,
    Page,
    Service,
    Shard,
    StreamSummary,
)
from tidemill.sources.kinesis.shard_cursor import ShardCursor
from tidemill.sources.kinesis.shard_offset import (
    TRIM_HORIZON,
    Position,
    StreamOffset,
    time_text,
)

MOST_KEPT = 32 * 2**20
"""Bytes of records that a plan hands to the batch's tasks; of more they read all again."""

MOST_THREADS = 16

PINNED_FOR = timedelta(hours=1)
"""How old `read_to` may be of a stream without records, before an empty batch renews it."""


@dataclass(frozen=True)
class Limits:
    """How much a batch holds: records, bytes of their data (None: all there is), and no record
    that arrived at `until` or later. A batch holds one record at least, so it may exceed the
    bytes."""

    records: int | None = None
    bytes: int | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class BatchPlan:
    """Where a batch ends, its records by shard where they were kept, and how many milliseconds each
    shard is behind its newest record."""

    end: StreamOffset
    records: Mapping[str, list[KinesisRecord]] | None
    behind: Mapping[str, int]


def plan_batch(
    service: Service, start: StreamOffset, limits: Limits, stream: StreamSummary, *, fails: bool
) -> BatchPlan:
    """Return the batch after `start`; its end is `start` itself where there is nothing new.

    QueryError when records were removed unread, unless `fails` is False: then it goes on with the
    oldest ones left.
    """
    _check_same_stream(service, start, stream)
    shards = service.shards()
    retention = Retention(service, stream.at - stream.retention, fails)
    retention.check_listed(shards, start)
    reading = _Reading(service, shards, start, limits, retention)
    reading.read()
    end = start.moved_to(reading.positions(stream.at))
    kept = {name: shard.kept for name, shard in reading.open.items() if shard.count}
    behind = {name: shard.behind for name, shard in reading.open.items()}
    return BatchPlan(
        end if _is_news(start, end) else start, kept if reading.keeps else None, behind
    )


def _check_same_stream(service: Service, start: StreamOffset, stream: StreamSummary) -> None:
    created = time_text(stream.created)
    if created != start.created:
        raise QueryError(
            f"was made at {created}; the checkpoint is of a stream made at {start.created}",
            where=place_of(service.address),
            expected="a new lake for a stream that was deleted and made again",
        )


def _is_news(start: StreamOffset, end: StreamOffset) -> bool:
    """Return whether to make a batch: of records, of shards that came, ended or went, or, of a
    quiet stream, once an hour, as `read_to` tells what cannot be lost."""
    if _marks(start) != _marks(end):
        return True
    pairs = [(start.shards[name].read_to, one.read_to) for name, one in end.shards.items()]
    return any(new and (old is None or new - old >= PINNED_FOR) for old, new in pairs)


def _marks(offset: StreamOffset) -> dict[str, tuple[str | None, bool]]:
    return {name: (at.after, at.ended) for name, at in offset.shards.items()}


@dataclass
class _Reading:
    """The shards of a batch, read in rounds of one page each until a limit, or till they rest."""

    service: Service
    shards: Sequence[Shard]
    start: StreamOffset
    limits: Limits
    retention: Retention
    open: dict[str, OpenShard] = field(default_factory=dict)
    records: int = 0
    bytes: int = 0
    keeps: bool = True
    is_full: bool = False  # of bytes

    def read(self) -> None:
        """Read rounds, the shard that is furthest behind first where not all get their turn."""
        with ThreadPoolExecutor(MOST_THREADS) as pool:
            while shards := self._unread():
                shards.sort(key=lambda shard: shard.read_to)
                share = self._share(len(shards))
                turn = shards[: None if self.limits.records is None else self._records_left]
                pages = list(pool.map(lambda shard, share=share: shard.read(share), turn))
                for shard, page in zip(turn, pages, strict=True):
                    self._take(shard, page)

    def positions(self, now: datetime) -> dict[str, Position]:
        """Return where each listed shard that was begun stands; an ended one that is gone needs no
        position any more."""
        listed = {shard.name for shard in self.shards}
        before = {name: at for name, at in self.start.shards.items() if name in listed}
        return before | {name: shard.position(now) for name, shard in self.open.items()}

    @property
    def _records_left(self) -> int:
        assert self.limits.records is not None
        return self.limits.records - self.records

    def _share(self, shards: int) -> int:
        if self.limits.records is None:
            return PAGE_RECORDS
        return min(PAGE_RECORDS, max(1, self._records_left // shards))

    def _unread(self) -> list[OpenShard]:
        """Return the shards that may be read on, with those whose parents are through."""
        for shard in self.shards:
            if shard.name not in self.open and self._may_begin(shard):
                self.open[shard.name] = self._opened(shard)
        if self.is_full or (self.limits.records is not None and self._records_left <= 0):
            return []
        return [shard for shard in self.open.values() if not shard.rests]

    def _may_begin(self, shard: Shard) -> bool:
        """Return whether a shard is not at its end, and its parents are, before this batch."""
        position = self.start.shards.get(shard.name, Position())
        listed = {one.name for one in self.shards}
        return not position.ended and all(
            self._is_through(parent) for parent in shard.parents if parent in listed
        )

    def _is_through(self, shard: str) -> bool:
        if shard in self.open:
            return self.open[shard].cursor.ended and not self.open[shard].count
        return self.start.shards.get(shard, Position()).ended

    def _opened(self, shard: Shard) -> OpenShard:
        position = self.start.shards.get(shard.name, Position())
        is_gone = self.retention.is_gone(shard.name, position)
        begins = TRIM_HORIZON if is_gone else self.start.begins
        after = None if is_gone else position.after
        return OpenShard(ShardCursor(self.service, shard.name, begins, after), position, is_gone)

    def _take(self, shard: OpenShard, page: Page) -> None:
        """Take of a page what the limits allow, of the first one of a batch one record at least."""
        old: Sequence[KinesisRecord] = page.records
        if self.limits.until is not None:
            old = _before(page.records, self.limits.until)
            shard.is_cut = len(old) < len(page.records)
        least = 0 if self.records else 1
        taken = old if self.limits.bytes is None else _within(old, self._bytes_left, least)
        self.bytes += shard.take(taken, page, keeps=self.keeps)
        self.records += len(taken)
        self.is_full |= len(taken) < len(old)
        if self.keeps and self.bytes > MOST_KEPT:
            self.keeps = False
            for one in self.open.values():
                one.kept.clear()

    @property
    def _bytes_left(self) -> int:
        assert self.limits.bytes is not None
        return self.limits.bytes - self.bytes


def _before(records: Sequence[KinesisRecord], until: datetime) -> Sequence[KinesisRecord]:
    """Return the records before the first one that arrived at a time or later."""
    for index, record in enumerate(records):
        if record.arrived >= until:
            return records[:index]
    return records


def _within(
    records: Sequence[KinesisRecord], most_bytes: int, least: int
) -> Sequence[KinesisRecord]:
    """Return the first records, as many as there is room for, and `least` at least."""
    sizes = accumulate(len(record.data) for record in records)
    return records[: max(least, sum(1 for size in sizes if size <= most_bytes))]
