"""Alerts on their way out of a run: each sink on a thread and in a session of its own.

    on_start ──► a thread for each sink: what is new ──► sink, again and again
    on_stop  ──► the message under way is the last one
    finish   ──► the rest, for a few seconds; what is left waits in the table for the next run

No batch waits for a sink, and none that fails ends the run: it is tried again after 1, 2, 4 ...
300 seconds, and the metrics say so.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from tidemill.lake.catalog import Lake, register
from tidemill.lake.session.separate_session import separate_session
from tidemill.pipeline.observer import Observer
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.sinks.alert_topic import TopicDelivery
from tidemill.pipeline.sinks.alert_webhook import WebhookDelivery
from tidemill.pipeline.sinks.delivery import AlertDelivery, Delivered, NotNow

log = logging.getLogger(__name__)
LONGEST = 300.0  # seconds between two tries
PATIENCE = 20.0  # seconds that the end of a run waits for its sinks


class Told(Protocol):
    """Who is told how a sink does."""

    def sent(self, sink: str, delivered: Delivered) -> None:
        """Hear what it took."""

    def works(self, sink: str, does: bool) -> None:
        """Hear whether the last try went well."""


def deliveries(lake: Lake) -> list[AlertDelivery]:
    """Return the sinks of a pipeline's alerts."""
    words = lake.pipeline.alert_sinks
    found: list[AlertDelivery] = []
    if words and words.kafka:
        found.append(TopicDelivery(lake, words.kafka))
    if words and words.webhook:
        found.append(WebhookDelivery(lake, words.webhook))
    return found


@dataclass
class AlertSending(Observer):
    """Sends a run's alerts; does nothing where a pipeline has no sink of them."""

    lake: Lake
    told: Told
    _threads: list[Sender] = field(default_factory=list, init=False)

    def on_start(self, pipeline: Pipeline) -> None:
        """Begin to send."""
        for place, _ in enumerate(deliveries(self.lake)):
            sender = Sender(partial(_delivery_apart, self.lake, place), self.told)
            self._threads.append(sender)
            sender.start()

    def on_stop(self) -> None:
        """Wait for the message under way of each sink."""
        for sender in self._threads:
            sender.stopping.set()
        for sender in self._threads:
            sender.join()
        self._threads.clear()

    def finish(self) -> None:
        """Send what is left, a few seconds at most; a sink that does not take it is warned of."""
        until = time.monotonic() + PATIENCE
        for delivery in deliveries(self.lake):
            try:
                _send(delivery, self.told, lambda: time.monotonic() > until)
            except NotNow as error:
                log.warning("%s; what is left waits for the next run", error)


class Sender(threading.Thread):
    """Sends to one sink until it is stopped; it does not keep the process alive."""

    def __init__(self, delivery: Callable[[], AlertDelivery], told: Told):
        """Be ready to start; the delivery is made in the thread, with a session of its own."""
        super().__init__(name="alerts", daemon=True)
        self.stopping = threading.Event()
        self._delivery, self._told = delivery, told

    def run(self) -> None:
        """Send what is new, wait, and again; longer and longer where the sink does not take it."""
        delivery, waits = None, waits_between_tries()
        while not self.stopping.is_set():
            try:
                delivery = delivery or self._delivery()
                _send(delivery, self._told, self.stopping.is_set)
                wait, waits = delivery.every, waits_between_tries()
            except Exception as error:  # no sink ends a run
                wait = max(next(waits), error.wait if isinstance(error, NotNow) else 0.0)
                log.warning("%s; again in %.0f s", error, wait)
            self.stopping.wait(wait)


def waits_between_tries() -> Iterator[float]:
    """Yield the seconds to wait after one failure after another: doubled each time, and up to a
    quarter less, so that many pipelines do not come back at once."""
    wait = 1.0
    while True:
        yield wait * random.uniform(0.75, 1.0)
        wait = min(2 * wait, LONGEST)


def _send(delivery: AlertDelivery, told: Told, is_over: Callable[[], bool]) -> None:
    """Send until nothing is new, or it is over."""
    try:
        while _has_sent(delivery, told, is_over) and not is_over():
            pass
    except Exception:
        told.works(delivery.sink, False)
        raise
    told.works(delivery.sink, True)


def _has_sent(delivery: AlertDelivery, told: Told, is_over: Callable[[], bool]) -> bool:
    has_sent = False
    for delivered in delivery.deliver():
        told.sent(delivery.sink, delivered)
        has_sent = True
        if is_over():
            break
    return has_sent


def _delivery_apart(lake: Lake, place: int) -> AlertDelivery:
    """Return one of the sinks, with a session of its own."""
    spark = separate_session(lake.spark)
    register(spark, lake.place)
    return deliveries(lake.within(spark))[place]
