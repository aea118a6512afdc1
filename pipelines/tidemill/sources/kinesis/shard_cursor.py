"""A place in a shard, from which its records are read page by page."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from tidemill.sources.kinesis.refusals import IteratorExpired
from tidemill.sources.kinesis.service import Page, Service


@dataclass
class ShardCursor:
    """Reads a shard after a sequence number, else from `start`; it goes on when its iterator, which
    lives five minutes, has expired."""

    service: Service
    shard: str
    start: str | datetime
    after: str | None = None
    ended: bool = False
    _iterator: str | None = field(default=None, repr=False)

    def read(self, most: int) -> Page:
        """Return the next records, at most so many; none at the end, and sometimes before it, which
        the page's `behind` tells."""
        page = self._page(most)
        self.after = page.records[-1].sequence if page.records else self.after
        self._iterator, self.ended = page.next, page.next is None
        return page

    def back_to(self, sequence: str | None) -> None:
        """Go back, so that the record after `sequence` comes next."""
        self.after, self._iterator, self.ended = sequence, None, False

    def _page(self, most: int) -> Page:
        iterator = self._iterator or self._renewed()
        try:
            return self.service.page(iterator, most)
        except IteratorExpired:
            return self.service.page(self._renewed(), most)

    def _renewed(self) -> str:
        return self.service.iterator(self.shard, self.start, self.after)
