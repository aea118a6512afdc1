"""Alerts that a sink has not sent yet, from their table, in the order in which they were found.

    <pipeline>_alerts ──versions after the mark──► alert_messages.sql ──► messages

A sink that is new begins with the alerts that go on. The table is all that it reads: what was not
sent waits there, whatever ends the process, and takes no memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import ask
from tidemill.lake.relations import Relation
from tidemill.lake.schema.table_properties import tell
from tidemill.lake.statements import statement
from tidemill.lake.tables.table import CHANGE_FEED
from tidemill.pipeline.sinks.sent_version import Mark, SentVersion

VERSION = "_commit_version"


@dataclass(frozen=True)
class UnsentAlerts:
    """Messages as `alert_messages` has them, but for those sent before: they begin behind the mark
    `after`, None for a sink that is new, and with all of them sent it has come `until` there."""

    messages: DataFrame
    after: Mark | None
    until: Mark
    sent: SentVersion

    def mark(self, messages: int) -> None:
        """Write down that so many of the messages are sent. Of a sink that is new do nothing: it
        begins anew, as what goes on may be other alerts by then."""
        if self.after:
            self.sent.write(Mark(self.after.version, self.after.rows + messages))

    def mark_all(self) -> None:
        """Write down that all of them are sent."""
        self.sent.write(self.until)


def unsent(lake: Lake, sink: str, target: str) -> UnsentAlerts | None:
    """Return what the sink has not sent to this target; None where that is nothing. LakeError where
    the table's versions are gone that far back."""
    table = lake.tables.alerts.name
    if not lake.has(table):
        return None
    # By Delta's id: a rebuild does not make this table again.
    sent = SentVersion.of_sink(lake, f"alerts-{sink}", lake.detail(table).id, target)
    mark, newest = sent.mark(), lake.commits(table, 1)[0].version
    if mark == Mark(newest):
        return None
    if mark is None:
        rows = _going_on(lake, table, newest)
    else:
        rows = sent.changes(lake, table, mark.version, newest)
    pipeline = lake.pipeline.pipeline
    text = statement("alert_messages", lake.pipeline.events, source=f"{pipeline}_{sink}")
    messages = ask(lake.spark, text, {"pipeline": pipeline}, {f"{pipeline}_{sink}_unsent": rows})
    left = messages.offset(mark.rows if mark else 0)
    return UnsentAlerts(left, mark, Mark(newest), sent)


def _going_on(lake: Lake, table: str, newest: int) -> DataFrame:
    """Return the rows of alerts that have fired and were not resolved."""
    if lake.metadata(table).properties.get(CHANGE_FEED) != "true":  # it was made before it had one
        tell(lake.spark, table, {CHANGE_FEED: "true"})
    rows = Relation(table, newest).frame(lake.spark)
    resolved = rows.where("state = 'resolved'").select("episode")
    fired = rows.where("state = 'fired'").join(resolved, "episode", "anti")
    return fired.withColumn(VERSION, F.lit(newest))
