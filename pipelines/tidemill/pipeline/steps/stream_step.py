"""stream: the events through a stream's operator, its rows into the stream's table."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tidemill.config.dataflow import Query
from tidemill.errors import LakeError
from tidemill.lake.catalog import Lake
from tidemill.lake.tables.stream_table import DEFINITION
from tidemill.pipeline import queries
from tidemill.pipeline.batch_failures import of_batch
from tidemill.pipeline.queries import Pipeline, Trigger
from tidemill.pipeline.streams import row_batch, state_limit, stream_rows
from tidemill.pipeline.streams.session_batch import merge_sessions
from tidemill.pipeline.streams.span_batch import merge_spans
from tidemill.pipeline.streams.stream_progress import StreamProgress

EVERYTHING = 2**31 - 1


def start(pipeline: Pipeline, query: Query, trigger: Trigger) -> StreamingQuery:
    """Start following the events. The first batch of an operator with a state takes all that are
    there: files of a snapshot are in no order, and of two batches the second one's events would be
    late."""
    lake, stream = pipeline.lake, pipeline.definition.stream(str(query.stream))
    if stream.sessions or stream.span:
        merge = partial(stateless_batch, lake=lake, name=stream.name)
        return pipeline.named(
            pipeline.follow(query).writeStream.foreachBatch(merge), query, trigger
        ).start()
    whole = not lake.checkpoint(query.checkpoint).has_read
    events = pipeline.follow(query, EVERYTHING if whole else None)
    step = partial(stream_batch, lake=lake, name=stream.name)
    with stream_rows.settings(lake.spark, stream):
        rows = stream_rows.stream_rows(events, stream, pipeline.definition.events)
        writer = rows.writeStream.outputMode(stream_rows.output_mode(stream)).foreachBatch(step)
        return pipeline.named(writer, query, trigger).start()


def claim(pipeline: Pipeline, query: Query) -> None:
    """Take the checkpoint; refuse a stream whose rows another declaration made."""
    lake, stream = pipeline.lake, pipeline.definition.stream(str(query.stream))
    made_by = lake.metadata(stream.name).properties.get(DEFINITION)
    if made_by != stream.definition:
        raise LakeError(
            f"its rows were made by another declaration ({made_by}), and its state too",
            where=stream.name,
            expected="another name for the stream, which begins with the events that are there, or "
            f"`tidemill rebuild {lake.pipeline.command_name} --from bronze`",
        )
    queries.claim(pipeline, query)


def watch(pipeline: Pipeline, query: Query, running: StreamingQuery) -> None:
    """Raise QueryError when the state of a running stream holds more than it may."""
    stream = pipeline.definition.stream(str(query.stream))
    if stream.max_state_rows is None or (last := running.lastProgress) is None:
        return
    if progress := StreamProgress.of(last):
        state_limit.check(stream, progress.state_rows)


def stream_batch(batch: DataFrame, batch_id: int, *, lake: Lake, name: str) -> None:
    """One batch of a stream; any frame of its rows and any id."""
    with of_batch(lake, f"stream_{name}", batch_id, name):
        stream = lake.pipeline.stream(name)
        write = row_batch.merge_rows if stream.merges else row_batch.append_rows
        write(batch, batch_id, lake=lake, stream=stream)


def stateless_batch(batch: DataFrame, batch_id: int, *, lake: Lake, name: str) -> None:
    """One batch of sessions, or of first and last events; any frame of events and any id."""
    with of_batch(lake, f"stream_{name}", batch_id, name):
        stream = lake.pipeline.stream(name)
        merge = merge_sessions if stream.sessions else merge_spans
        merge(batch, batch_id, lake=lake, stream=stream)
