"""Amazon Kinesis as boto3 speaks with it: calls that wait and try again, answers as values.

Credentials come from boto3's own chain (environment, profile, role) and are never read here.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from tidemill.errors import InputError, QueryError, SetupError
from tidemill.sources.kinesis.refusals import (
    StreamAddress,
    explained_refusal,
    given_up,
    may_pass,
    place_of,
)

PAGE_RECORDS = 10_000
"""What GetRecords gives at most in one answer."""

PATIENCE = 120.0
"""Seconds for which a call is tried again before the query fails."""

FIRST_WAIT, LONGEST_WAIT = 0.1, 10.0


class KinesisRecord(NamedTuple):
    """A record as it lies in its shard."""

    sequence: str
    key: str
    data: bytes
    arrived: datetime


class Page(NamedTuple):
    """An answer of GetRecords: what comes next has the iterator `next`, None after the end of a
    shard that was closed; `behind` is how many milliseconds lie between the page and the newest
    record."""

    records: tuple[KinesisRecord, ...]
    next: str | None
    behind: int


class Shard(NamedTuple):
    """A shard of the stream, and those that it was split or merged from; these may be gone."""

    name: str
    parents: tuple[str, ...]


class StreamSummary(NamedTuple):
    """When the stream was made, how long it keeps records, and the service's time."""

    created: datetime
    retention: timedelta
    at: datetime


@dataclass(frozen=True)
class Service:
    """One stream of a Kinesis service. A call that is throttled or meets no answer is tried again
    with a growing, random wait, until `patience` seconds are over."""

    address: StreamAddress
    client: Any
    patience: float = PATIENCE
    sleep: Callable[[float], None] = time.sleep

    @property
    def region(self) -> str:
        """The region that boto3 found."""
        return str(self.client.meta.region_name)

    def summary(self) -> StreamSummary:
        """Return what the service says of the stream; InputError where there is none."""
        answer = self.call("describe_stream_summary", StreamName=self.address.stream)
        found = answer["StreamDescriptionSummary"]
        retention = timedelta(hours=found["RetentionPeriodHours"])
        return StreamSummary(_utc(found["StreamCreationTimestamp"]), retention, _time_of(answer))

    def shards(self) -> tuple[Shard, ...]:
        """Return the shards that still hold records, closed ones too."""
        listed: list[Mapping[str, Any]] = []
        asked: dict[str, str] = {"StreamName": self.address.stream}
        while asked:
            answer = self.call("list_shards", **asked)
            listed += answer["Shards"]
            asked = {"NextToken": answer["NextToken"]} if answer.get("NextToken") else {}
        return tuple(Shard(one["ShardId"], _parents(one)) for one in listed)

    def iterator(self, shard: str, start: str | datetime, after: str | None) -> str:
        """Return the iterator of what comes after a sequence number, else from `start`: a time, or
        TRIM_HORIZON."""
        if after is not None:
            return self._iterator(shard, "AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=after)
        if isinstance(start, datetime):
            return self._iterator(shard, "AT_TIMESTAMP", Timestamp=start)
        return self._iterator(shard, start)

    def holds(self, shard: str, sequence: str) -> bool:
        """Return whether a record is still in its shard; one whose number the service does not know
        any more is not."""
        try:
            at = {"StartingSequenceNumber": sequence}
            iterator: str | None = self._iterator(shard, "AT_SEQUENCE_NUMBER", **at)
        except QueryError as error:
            if "InvalidArgumentException" in error.message:
                return False
            raise
        while iterator:
            page = self.page(iterator, 1)
            if page.records or not page.behind:
                return any(record.sequence == sequence for record in page.records)
            iterator = page.next
        return False

    def page(self, iterator: str, most: int) -> Page:
        """Return at most so many records; IteratorExpired for an iterator that is too old."""
        answer = self.call("get_records", ShardIterator=iterator, Limit=min(most, PAGE_RECORDS))
        records = tuple(
            KinesisRecord(
                one["SequenceNumber"],
                one["PartitionKey"],
                one["Data"],
                _utc(one["ApproximateArrivalTimestamp"]),
            )
            for one in answer["Records"]
        )
        behind = answer.get("MillisBehindLatest", 0)
        return Page(records, answer.get("NextShardIterator"), behind)

    def call(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        """Return the answer of an operation of the API."""
        deadline, wait = time.monotonic() + self.patience, FIRST_WAIT
        while True:
            try:
                answer: Mapping[str, Any] = getattr(self.client, operation)(**parameters)
                return answer
            except Exception as error:
                if not may_pass(error):
                    raise explained_refusal(error, self.address, operation) from error
                if time.monotonic() + wait > deadline:
                    raise given_up(error, self.address, operation, self.patience) from error
            self.sleep(wait * random.uniform(0.5, 1))
            wait = min(2 * wait, LONGEST_WAIT)

    def _iterator(self, shard: str, kind: str, **at: Any) -> str:
        answer = self.call(
            "get_shard_iterator",
            StreamName=self.address.stream,
            ShardId=shard,
            ShardIteratorType=kind,
            **at,
        )
        return str(answer["ShardIterator"])


def connect(address: StreamAddress, patience: float = PATIENCE) -> Service:
    """Return the service, which is asked nothing yet; SetupError without boto3, InputError without
    a region."""
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import NoRegionError
    except ImportError as error:
        expected = "pip install 'tidemill[kinesis]'"
        raise SetupError("boto3 is not installed", where="kinesis", expected=expected) from error
    config = Config(
        connect_timeout=5,
        read_timeout=30,
        max_pool_connections=32,
        retries={"total_max_attempts": 1},  # `Service.call` does it, and says when it gives up
    )
    try:
        client = boto3.client(
            "kinesis",
            region_name=address.region,
            endpoint_url=address.endpoint,
            config=config,
        )
    except NoRegionError as error:
        expected = "region: NAME, --region NAME, or AWS_DEFAULT_REGION"
        raise InputError("has no region", where=place_of(address), expected=expected) from error
    except ValueError as error:  # an endpoint that is no URL
        expected = "endpoint_url: such as https://kinesis.eu-central-1.amazonaws.com"
        raise InputError(str(error), where=place_of(address), expected=expected) from error
    return Service(address, client, patience)


def _parents(shard: Mapping[str, Any]) -> tuple[str, ...]:
    parents = (shard.get("ParentShardId"), shard.get("AdjacentParentShardId"))
    return tuple(parent for parent in parents if parent)


def _utc(at: datetime) -> datetime:
    return at.astimezone(timezone.utc)


def _time_of(answer: Mapping[str, Any]) -> datetime:
    """Return when the service answered, by its own clock, in whole seconds."""
    date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    return _utc(parsedate_to_datetime(date) if date else datetime.now(timezone.utc))
