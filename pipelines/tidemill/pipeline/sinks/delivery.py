"""What a sink of alerts does: it sends what is new, and says how many were taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from tidemill.errors import SourceError


@dataclass(frozen=True)
class Delivered:
    """How many alerts a sink has taken, and how many it will never take."""

    sent: int = 0
    refused: int = 0


class NotNow(SourceError):
    """A sink does not take alerts now; it asks for `wait` seconds before the next try."""

    def __init__(self, message: str, *, where: str, expected: str | None, wait: float = 0.0):
        """Hold the parts of the message."""
        super().__init__(message, where=where, expected=expected)
        self.wait = wait


class AlertDelivery(Protocol):
    """A sink of alerts, by its name in a pipeline's file."""

    @property
    def sink(self) -> str:
        """The name."""

    @property
    def every(self) -> float:
        """The seconds between two looks at what is new."""

    def deliver(self) -> Iterator[Delivered]:
        """Send what is new, in the order in which it was found, and yield what was taken, written
        down by then; NotNow where the other side does not take it. Who wants no more stops
        asking."""
