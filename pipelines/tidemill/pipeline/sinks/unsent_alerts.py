"""Alerts that a sink has not sent yet, from their table, in the order in which they were found.

    <pipeline>_alerts ──versions after the mark──► alert_messages.sql ──► messages

A sink that is new begins with the alerts that go on. The table is all that it reads: what was not
sent waits there, whatever ends the process, and takes no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from tidemill.errors import LakeError
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import ask
from tidemill.lake.relations import Relation
from tidemill.lake.schema.table_properties import tell
from tidemill.lake.statements import statement
from tidemill.lake.tables.table import CHANGE_FEED
from tidemill.pipeline.failures import sentence
from tidemill.pipeline.sinks.sent_version import Mark, SentVersion

VERSION = "_commit_version"


@dataclass(frozen=True)
class UnsentAlerts:
    """Messages as `alert_messages` has them, but for those sent before: they begin behind the mark
    `after`, and with all of them sent the sink has come `until` there."""

    messages: DataFrame
    after: Mark
    until: Mark
    sent: SentVersion
    table: str

    def rows(self) -> Iterator[Row]:
        """Yield the messages one by one; LakeError where a file that holds some is gone."""
        try:
            yield from self.messages.toLocalIterator()
        except Exception as error:  # py4j's too
            raise self.lost(error) from error

    def lost(self, error: Exception) -> LakeError:
        """Return the error for messages that cannot be read, with the way out."""
        return self.sent.lost(self.table, sentence(error))

    def mark(self, messages: int) -> None:
        """Write down that so many of the messages are sent."""
        self.sent.write(replace(self.after, rows=self.after.rows + messages))

    def mark_all(self) -> None:
        """Write down that all of them are sent."""
        self.sent.write(self.until)


def unsent(lake: Lake, sink: str, target: str) -> UnsentAlerts | None:
    """Return what the sink has not sent to this target; None where that is nothing. LakeError where
    the table's versions, or later its files, are gone that far back."""
    table = lake.tables.alerts.name
    if not lake.has(table):
        return None
    # By Delta's id: a rebuild does not make this table again.
    sent = SentVersion.of_sink(lake, f"alerts-{sink}", lake.detail(table).id, target)
    newest = lake.commits(table, 1)[0].version
    mark = sent.mark() or Mark(newest, begins=True)
    if mark == Mark(newest):
        return None
    if mark.begins:
        rows, until = _going_on(lake, table, mark.version), Mark(mark.version)
    else:
        rows, until = sent.changes(lake, table, mark.version, newest), Mark(newest)
    pipeline = lake.pipeline.pipeline
    text = statement("alert_messages", lake.pipeline.events, source=f"{pipeline}_{sink}")
    messages = ask(lake.spark, text, {"pipeline": pipeline}, {f"{pipeline}_{sink}_unsent": rows})
    return UnsentAlerts(messages.offset(mark.rows), mark, until, sent, table)


def _going_on(lake: Lake, table: str, version: int) -> DataFrame:
    """Return the rows of alerts that had fired and were not resolved."""
    if lake.metadata(table).properties.get(CHANGE_FEED) != "true":  # it was made before it had one
        tell(lake.spark, table, {CHANGE_FEED: "true"})
    rows = Relation(table, version).frame(lake.spark)
    resolved = rows.where("state = 'resolved'").select("episode")
    fired = rows.where("state = 'fired'").join(resolved, "episode", "anti")
    return fired.withColumn(VERSION, F.lit(version))
