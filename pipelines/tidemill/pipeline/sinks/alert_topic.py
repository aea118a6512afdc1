"""Alerts into a Kafka topic: at least once, those of a key in one partition and in their order."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from tidemill.config.alert_sinks import AlertTopic
from tidemill.features.windows import duration
from tidemill.lake.catalog import Lake
from tidemill.lake.commits.failpoints import reach
from tidemill.pipeline.failures import explained
from tidemill.pipeline.row_writes.frame_cache import cached
from tidemill.pipeline.sinks import unsent_alerts
from tidemill.pipeline.sinks.delivery import Delivered, NotNow
from tidemill.pipeline.sinks.unsent_alerts import VERSION
from tidemill.sources.kafka import reader_options

log = logging.getLogger(__name__)
WHERE = "alert_sinks.kafka"


@dataclass(frozen=True)
class TopicDelivery:
    """Sends the alerts of a lake to a topic, all that are new in one write."""

    lake: Lake
    words: AlertTopic
    sink = "kafka"

    @property
    def every(self) -> float:
        """The seconds whose alerts go together."""
        return duration(self.words.every).total_seconds()

    def deliver(self) -> Iterator[Delivered]:
        """Send what is new; NotNow where the brokers do not take it."""
        new = unsent_alerts.unsent(self.lake, self.sink, self.words.topic)
        if new is None:
            return
        options = reader_options.writing(self.words, self.words.topic)
        with cached(new.messages) as messages:
            try:
                number = messages.count()
            except Exception as error:  # py4j's too
                raise new.lost(error) from error
            in_order = messages.repartition("key").sortWithinPartitions(VERSION, "version")
            try:
                in_order.select("key", "value").write.format("kafka").options(**options).save()
            except Exception as error:  # py4j's too
                known = explained(error, "the sink of alerts")
                raise NotNow(known.message, where=WHERE, expected=known.expected) from error
        reach("alerts.sent")
        new.mark_all()
        log.info("%s: %d alerts to %s", WHERE, number, self.words.topic)
        yield Delivered(number)
