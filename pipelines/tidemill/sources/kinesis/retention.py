"""Records that the stream removed before they were read: found, and refused.

Kinesis does not tell: an iterator after a record that is gone begins at the oldest one left, in
silence. So a shard that was not read for as long as the stream keeps records is asked for the last
record that was read of it: records are removed in their order, so while that one is there, nothing
after it is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from tidemill.errors import QueryError
from tidemill.sources.kinesis.refusals import place_of
from tidemill.sources.kinesis.service import Service, Shard
from tidemill.sources.kinesis.shard_offset import Position, StreamOffset, time_text

LOG = logging.getLogger(__name__)
FIX = (
    "fail_on_data_loss: false to go on with the oldest records left, and a longer retention of "
    "the stream (aws kinesis increase-stream-retention-period)"
)


@dataclass(frozen=True)
class Retention:
    """From when on the stream holds its records, and whether to fail for older, unread ones."""

    service: Service
    horizon: datetime
    fails: bool

    def check_listed(self, shards: Collection[Shard], start: StreamOffset) -> None:
        """Report shards that are listed no longer and were not read to their end, or of which a
        child was not begun: a closed shard is listed for as long as the stream keeps records."""
        listed = {shard.name for shard in shards}
        parents = {p for shard in shards if shard.name not in start.shards for p in shard.parents}
        for name, position in start.shards.items():
            if name not in listed and (name in parents or not position.ended):
                self.report(name, position.read_to)

    def is_gone(self, shard: str, position: Position) -> bool:
        """Return whether the records after a position may be gone; True is reported, too."""
        if position.read_to is None or position.read_to >= self.horizon:
            return False
        if position.after and self.service.holds(shard, position.after):
            return False
        self.report(shard, position.read_to)
        return True

    def report(self, shard: str, read_to: datetime | None) -> None:
        """Raise QueryError that names the shard and the way out; where it shall not fail, log
        it."""
        until = time_text(read_to) if read_to else "its beginning"
        found = (
            f"records of {shard} may be gone: it was read up to {until}, and the stream holds "
            f"records from {time_text(self.horizon)} on"
        )
        if self.fails:
            raise QueryError(found, where=place_of(self.service.address), expected=FIX)
        LOG.warning("%s: %s; going on with what is left", place_of(self.service.address), found)
