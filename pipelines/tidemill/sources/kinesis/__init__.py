"""The kind `kinesis`: the records of an Amazon Kinesis data stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AwareDatetime, Field

from tidemill.errors import InputError
from tidemill.features.types import Size, bytes_of
from tidemill.sources.source_kind import SourceContext, SourceKind, SourceOption, SourceWords

if TYPE_CHECKING:
    from tidemill.sources.kinesis.source import Kinesis

StreamName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.-]{1,128}$")]


class KinesisSource(SourceWords):
    """The records of an Amazon Kinesis data stream.

    `starting_position` is where a new lake begins: trim_horizon (the oldest record), latest, or a
    time. A batch of land holds at most `max_records` records and `max_bytes` of data. Records that
    the stream removed unread end the run, unless `fail_on_data_loss` is false.
    """

    kind: Literal["kinesis"]
    stream: StreamName | None = None
    region: str | None = None
    endpoint_url: str | None = None
    starting_position: Literal["trim_horizon", "latest"] | AwareDatetime = "trim_horizon"
    max_records: int = Field(default=500_000, ge=1)
    max_bytes: Size = "256m"
    fail_on_data_loss: bool = True


def _open(words: KinesisSource, context: SourceContext) -> Kinesis:
    from tidemill.sources.kinesis.read_options import ReadOptions
    from tidemill.sources.kinesis.refusals import StreamAddress
    from tidemill.sources.kinesis.source import Kinesis

    if not words.stream:
        raise InputError(
            "a kinesis source has no stream", where="source", expected="--stream NAME, or stream:"
        )
    start = words.starting_position
    return Kinesis(
        ReadOptions(
            StreamAddress(words.stream, words.region, words.endpoint_url),
            start.upper() if isinstance(start, str) else start.isoformat(),
            min(words.max_records, context.max_records or words.max_records),
            bytes_of(words.max_bytes),
            words.fail_on_data_loss,
        )
    )


KIND = SourceKind(
    "kinesis",
    "the records of an Amazon Kinesis stream",
    KinesisSource,
    _open,
    options=(
        SourceOption("stream", "The stream of a kinesis source."),
        SourceOption("region", "Its AWS region.  [default: as boto3 finds it]"),
        SourceOption("endpoint_url", "Another endpoint than AWS's, such as of a VPC."),
    ),
    clock="wall",
)
