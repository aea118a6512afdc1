"""What a stream of made-up records is mixed of."""

from __future__ import annotations

from dataclasses import dataclass

EVENT, LATE, DUPLICATE, MALFORMED, FUTURE = range(5)


@dataclass(frozen=True)
class Mix:
    """How many profiles and titles there are, and the share of records that are not plain events.

    Cards, devices and users count as profiles; merchants, ads and products as titles. Late events
    are one minute to three hours old, skewed to the young. A duplicate repeats an event's text in
    the same or a later minute. Future events carry the year 2099.
    """

    profiles: int = 1000
    titles: int = 50
    late: float = 0.03
    duplicate: float = 0.01
    malformed: float = 0.005
    future: float = 0.0005
    epoch: float = 0.1
    """Share of event times written as epoch milliseconds."""

    def fate(self, draw: float) -> int:
        """Return what becomes of a record, from a number in [0, 1)."""
        for fate, share in enumerate(
            (self.late, self.duplicate, self.malformed, self.future), start=LATE
        ):
            draw -= share
            if draw < 0:
                return fate
        return EVENT


DEFAULT_MIX = Mix()
