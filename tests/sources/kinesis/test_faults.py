"""What goes wrong with a stream: waited for, repaired, or said with what to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from command_line import call
from kinesis import REGION, FakeKinesis, name_of
from tidemill.errors import InputError, QueryError, SourceError
from tidemill.pipeline.failures import explained
from tidemill.sources.kinesis.batch_plan import Limits, plan_batch
from tidemill.sources.kinesis.data_source import KinesisStreamReader
from tidemill.sources.kinesis.refusals import StreamAddress
from tidemill.sources.kinesis.service import Service, StreamSummary, connect
from tidemill.sources.kinesis.shard_offset import StreamOffset
from tidemill.sources.kinesis.source import Kinesis


def step(reader: KinesisStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    return reader.latestOffset(start, reader.getDefaultReadLimit())


def count(reader: KinesisStreamReader, start: dict[str, Any], end: dict[str, Any]) -> int:
    parts = reader.partitions(start, end)
    return sum(batch.num_rows for part in parts for batch in reader.read(part))


def test_a_throttled_call_waits_longer_each_time(kinesis: FakeKinesis) -> None:
    stream, waits = kinesis.stream("throttled"), []
    stream.put(["a"])
    service = replace(stream.service, sleep=waits.append, patience=60)
    kinesis.fault(throttle=6)
    page = service.page(service.iterator(name_of(0), "TRIM_HORIZON", None), 10)
    assert len(page.records) == 1 and len(waits) == 6
    for number, wait in enumerate(waits):
        assert 0.05 * 2**number <= wait <= 0.1 * 2**number


def test_throttled_for_too_long_is_said(kinesis: FakeKinesis) -> None:
    service = replace(kinesis.stream("busy").service, patience=0.3)
    kinesis.fault(throttle=10**6)
    with pytest.raises(SourceError) as error:
        service.page(service.iterator(name_of(0), "TRIM_HORIZON", None), 10)
    assert "get_records was refused for 0 s: ProvisionedThroughputExceeded" in str(error.value)
    assert "fewer readers of this stream, or more shards" in str(error.value)


def test_an_expired_iterator_is_renewed_where_it_was(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("expired")
    stream.put(["a", "b", "c"])
    reader = stream.reader(max_records=2)
    start = reader.initialOffset()
    kinesis.fault(expire=1)
    middle = step(reader, start)
    kinesis.fault(expire=1)
    assert count(stream.reader(), start, middle) == 2  # read again by a task
    assert count(reader, middle, step(reader, middle)) == 1


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ({"stream": "unknown"}, "there is no such stream, or shard"),
        ({"endpoint": "no url"}, "endpoint_url: such as https://kinesis"),
    ],
)
def test_a_stream_that_is_not_there(
    kinesis: FakeKinesis, address: dict[str, str], words: str
) -> None:
    options = kinesis.stream(f"there-{len(words)}").options()
    options = replace(options, address=replace(options.address, **address))
    with pytest.raises(InputError, match=words) as error:
        Kinesis(options).check(once=True)
    assert error.value.exit_code == 2


def test_no_answer_ends_in_time_with_exit_3(kinesis: FakeKinesis) -> None:
    options = kinesis.stream("gone").options()
    address = replace(options.address, endpoint="http://127.0.0.1:1")
    with pytest.raises(SourceError, match="does not answer describe_stream_summary") as error:
        Kinesis(replace(options, address=address), patience=0.3).check(once=True)
    assert error.value.exit_code == 3
    assert "network that reaches Kinesis" in str(error.value)


def test_without_region_or_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    with pytest.raises(InputError, match=r"has no region.*AWS_DEFAULT_REGION"):
        connect(StreamAddress("one"))
    service = connect(StreamAddress("one", REGION, "http://127.0.0.1:1"), patience=0.2)
    with pytest.raises(InputError, match="no AWS credentials were found"):
        service.summary()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("UnrecognizedClientException", "AWS refuses the credentials"),
        ("AccessDeniedException", "a policy that allows kinesis:DescribeStreamSummary"),
    ],
)
def test_credentials_that_are_wrong_are_not_printed(code: str, words: str) -> None:
    """moto takes any credentials, so the client answers as AWS does."""
    client = boto3.client(
        "kinesis",
        REGION,
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="a secret",
        config=Config(retries={"total_max_attempts": 1}),
    )
    service = Service(StreamAddress("one", REGION), client)
    with Stubber(client) as stub:
        stub.add_client_error("describe_stream_summary", code, "no", http_status_code=400)
        with pytest.raises(InputError, match=words) as error:
            service.summary()
    assert "a secret" not in str(error.value) and "AKIDEXAMPLE" not in str(error.value)


DAY = timedelta(days=1)


def after(service: Service, time: timedelta) -> StreamSummary:
    summary = service.summary()
    return summary._replace(at=summary.at + time)


def test_records_that_retention_removed_unread(kinesis: FakeKinesis) -> None:
    #   a b │ c d e f        read up to b; a day later c and d are gone, and b before them
    stream = kinesis.stream("trimmed")
    stream.put(["a", "b"])
    reader = stream.reader()
    at = StreamOffset.of(step(reader, reader.initialOffset()))
    stream.put(["c", "d", "e", "f"])
    late = after(stream.service, 2 * DAY)
    plan = plan_batch(stream.service, at, Limits(), late, fails=True)
    assert plan.end.shards[name_of(0)].records == 4  # b is there, so is what came after it
    kinesis.fault(trim=["trimmed", name_of(0), 4])
    with pytest.raises(QueryError) as error:
        plan_batch(stream.service, at, Limits(), late, fails=True)
    assert f"records of {name_of(0)} may be gone: it was read up to" in str(error.value)
    assert "fail_on_data_loss: false" in str(error.value)
    assert "increase-stream-retention-period" in str(error.value)
    left = plan_batch(stream.service, at, Limits(), late, fails=False)
    position = left.end.shards[name_of(0)]
    assert (position.records, position.from_oldest) == (2, True)
    ranges = (at.to_json(), left.end.to_json())
    assert count(stream.reader(), *ranges) == 2  # again, by another process


def test_records_that_go_between_plan_and_read(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("between")
    stream.put(["a", "b", "c"])
    start = stream.reader().initialOffset()
    end = step(stream.reader(), start)
    kinesis.fault(trim=["between", name_of(0), 2])
    with pytest.raises(QueryError, match="2 of the 3 records of shardId-000000000000 up to"):
        count(stream.reader(), start, end)
    assert count(stream.reader(fail_on_data_loss=False), start, end) == 1


def test_a_shard_that_is_gone_before_it_was_read_to_its_end(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("unlisted", 2)
    stream.put(map(str, range(20)))
    reader = stream.reader()
    at = step(reader, reader.initialOffset())
    stream.split(0)
    kinesis.fault(unlist=["unlisted", name_of(0)])
    with pytest.raises(QueryError, match=f"records of {name_of(0)} may be gone"):
        step(reader, at)
    end = step(stream.reader(fail_on_data_loss=False), at)
    assert sorted(end["shards"]) == [name_of(1), name_of(2), name_of(3)]


def test_a_stream_that_was_made_again(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("remade")
    start = stream.reader().initialOffset()
    with pytest.raises(QueryError, match=r"was made at .*; the checkpoint is of a stream made at"):
        step(stream.reader(), {**start, "created": "2020-01-01T00:00:00.000Z"})


def test_a_quiet_stream_is_pinned_once_an_hour(kinesis: FakeKinesis) -> None:
    """So that after a stop of less than its retention nothing is taken for lost."""
    stream = kinesis.stream("quiet")
    reader = stream.reader()
    at = StreamOffset.of(step(reader, reader.initialOffset()))
    soon = plan_batch(stream.service, at, Limits(), after(stream.service, DAY / 30), fails=True)
    assert soon.end is at
    later = plan_batch(stream.service, at, Limits(), after(stream.service, DAY / 12), fails=True)
    read_to = later.end.shards[name_of(0)].read_to
    assert read_to and read_to - datetime.now(timezone.utc) > timedelta(hours=1)
    assert count(reader, at.to_json(), later.end.to_json()) == 0


def test_what_the_reader_raises_reaches_the_user(kinesis: FakeKinesis) -> None:
    """Spark hands on the traceback of the reader's process alone."""
    raised = QueryError(
        "records of shardId-0 may be gone", where="stream one", expected="more time"
    )
    text = f"[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] ...\ntidemill.errors.QueryError: {raised}"
    error = explained(RuntimeError(text), "engagement_land")
    assert isinstance(error, QueryError) and error.exit_code == 3
    assert "stream one: records of shardId-0 may be gone" in str(error)
    assert error.expected == "more time"


def test_the_command_line_says_it(kinesis: FakeKinesis, tmp_path: Path) -> None:
    kinesis.stream("clicks-of-doctor")
    at = ("--endpoint-url", kinesis.endpoint, "--root", tmp_path / "lake", "--json")
    answer = call("run", "engagement", "--stream", "unknown", "--once", *at)
    assert answer.code == 2
    assert answer.error["message"] == "there is no such stream, or shard"
    assert answer.error["where"] == f"stream unknown at {kinesis.endpoint}"
    for name, ok in (("clicks-of-doctor", True), ("unknown", False)):
        answer = call("doctor", "--source", "kinesis", "--stream", name, *at)
        (check,) = (one for one in answer.json["checks"] if one["name"] == "source")
        assert check["ok"] is ok
