"""The sink of a run: what its refreshes changed in gold goes to a Kafka topic as they are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemill.lake.batches import BatchRow
from tidemill.lake.catalog import Lake
from tidemill.pipeline.gold import kafka_sink
from tidemill.pipeline.observer import Observer
from tidemill.pipeline.queries import Pipeline


@dataclass
class GoldSink(Observer):
    """Sends what refreshes have changed, as the run tells of them; nothing without a `sink`."""

    lake: Lake

    def on_start(self, pipeline: Pipeline) -> None:
        """Send what an earlier run has left."""
        self.send()

    def on_batch(self, rows: Sequence[BatchRow]) -> None:
        """Send what the commits to gold have changed."""
        views = {view.name for view in self.lake.pipeline.views}
        if any(row.view in views for row in rows):
            self.send()

    def send(self) -> None:
        """Send what is new in each view's gold; SourceError where the brokers do not take it."""
        sink = self.lake.pipeline.sink
        if sink is None:
            return
        for view in self.lake.pipeline.views:
            kafka_sink.send(self.lake, view, sink.kafka)
