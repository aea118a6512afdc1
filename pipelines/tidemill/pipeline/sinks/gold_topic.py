"""What changes in gold, into a Kafka topic: at least once, each message with gold's version.

    gold ──its change data feed, from the version that was sent last──► topic ──► sent.json

First every row of gold is sent, then what each commit changed. The version that was sent last is
written down behind the messages: a process that dies in between sends them again, with the same
versions. Of a key a reader keeps the message with the highest version, and has gold.
"""

from __future__ import annotations

import logging

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.errors import SetupError, SourceError, TidemillError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.relations import Relation
from tidemill.pipeline.failures import explained, sentence
from tidemill.pipeline.gold.served_versions import NOTHING
from tidemill.pipeline.sinks.sent_version import Mark, SentVersion
from tidemill.sources.kafka import reader_options
from tidemill.sources.kafka.words import KafkaSink

log = logging.getLogger(__name__)
WHERE = "sink.kafka"
_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
}


def send_all(lake: Lake) -> None:
    """Send what is new in each view's gold; nothing without a `sink`."""
    if lake.pipeline.sink is not None:
        for view in lake.pipeline.views:
            send(lake, view, lake.pipeline.sink.kafka)


def send(lake: Lake, view: FeatureView, words: KafkaSink) -> None:
    """Send what gold's versions since the one sent last have changed, or every row."""
    table, topic = lake.tables.of(view).gold.name, words.topic_of(view.name)
    sent = SentVersion.of_sink(lake, view.name, lake.generation, topic)
    mark, newest = sent.mark(), lake.commits(table, 1)[0].version
    before = mark.version if mark else NOTHING
    if before == newest:
        return
    # A table that is made again counts its versions from the beginning.
    is_first = before == NOTHING or before > newest
    rows = _whole(lake, table, newest) if is_first else _changed(lake, sent, table, before, newest)
    options = reader_options.writing(words, topic)
    try:
        messages(rows, view).write.format("kafka").options(**options).save()
    except Exception as error:  # py4j's too
        raise _told(error, table, sent) from error
    reach("sink.sent")
    sent.write(Mark(newest))
    log.info("sink %s: version %d of %s", topic, newest, table)


def messages(rows: DataFrame, view: FeatureView) -> DataFrame:
    """Return key and value of each message, those of a key in one partition and by version."""
    deleted = F.col("_change_type") == "delete"
    features = F.struct(*(column.name for column in view.values))
    value = F.struct(
        F.lit(view.name).alias("view"),
        F.col("_commit_version").alias("version"),
        F.col("updated_at"),
        F.struct(*view.keys).alias("keys"),
        deleted.alias("deleted"),
        F.when(~deleted, features).alias("features"),
    )
    in_order = rows.repartition(*view.keys).sortWithinPartitions("_commit_version")
    return in_order.select(_key(view).alias("key"), F.to_json(value, _JSON).alias("value"))


def _key(view: FeatureView) -> Column:
    """Return the entity key as text: of several columns a JSON array of their texts."""
    texts = [F.col(key).cast("string") for key in view.keys]
    return texts[0] if len(texts) == 1 else F.to_json(F.array(*texts))


def _whole(lake: Lake, table: str, version: int) -> DataFrame:
    rows = Relation(table, version).frame(lake.spark)
    return rows.withColumn("_commit_version", F.lit(version)).withColumn(
        "_change_type", F.lit("insert")
    )


def _changed(lake: Lake, sent: SentVersion, table: str, before: int, newest: int) -> DataFrame:
    rows = sent.changes(lake, table, before, newest)
    return rows.where("_change_type <> 'update_preimage'")


def _told(error: Exception, table: str, sent: SentVersion) -> TidemillError:
    """Return our own error: of the brokers, or of versions that gold no longer has."""
    known = explained(error, "the sink")
    if isinstance(known, SourceError | SetupError):
        return type(known)(known.message, where=WHERE, expected=known.expected)
    return sent.lost(table, sentence(error))
