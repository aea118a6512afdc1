from __future__ import annotations

import pytest

from tidemill.config.pipeline_file import load
from tidemill.errors import InputError, UsageError
from tidemill.sources import registry
from tidemill.sources.kinesis.read_options import ReadOptions
from tidemill.sources.kinesis.refusals import StreamAddress
from tidemill.sources.kinesis.source import Kinesis
from tidemill.sources.source_kind import SourceContext


def test_options_survive_spark() -> None:
    address = StreamAddress("one", "eu-central-1", "http://127.0.0.1:4566")
    options = ReadOptions(address, "2026-11-21T10:05:00+00:00", 7, 64, False)
    assert ReadOptions.of({k.lower(): v for k, v in options.to_spark().items()}) == options
    assert ReadOptions.of({"streamName": "one"}) == ReadOptions(StreamAddress("one"))
    assert ReadOptions.of({"streamName": "one", "maxBytesPerTrigger": "1k"}).max_bytes == 1024


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "no stream is named"),
        ({"streamName": "s", "regoin": "x"}, "unknown option 'regoin'; did you mean 'region'"),
        ({"streamName": "s", "initialPosition": "newest"}, "initialPosition is 'newest'"),
        ({"streamName": "s", "initialPosition": "2026-11-21T10:05:00"}, "a time with its zone"),
        ({"streamName": "s", "maxRecordsPerTrigger": "0"}, "maxRecordsPerTrigger is '0'"),
        ({"streamName": "s", "maxBytesPerTrigger": "much"}, "maxBytesPerTrigger is 'much'"),
        ({"streamName": "s", "failOnDataLoss": "perhaps"}, "failOnDataLoss is 'perhaps'"),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(InputError) as error:
        ReadOptions.of(options)
    assert words in str(error.value)


def opened(max_offsets: int | None = None, **words: object) -> Kinesis:
    definition = load("engagement").overridden({"source": {"kind": "kinesis", **words}})
    context = SourceContext("engagement", max_records=max_offsets)
    source = registry.kind_of(definition.source).open(definition.source, context)
    assert isinstance(source, Kinesis)
    return source


def test_the_words_of_a_pipelines_file() -> None:
    options = opened(stream="clicks", starting_position="2026-11-21T10:05:00Z").options
    assert options.address == StreamAddress("clicks")
    assert options.starting_position == "2026-11-21T10:05:00+00:00"
    assert ReadOptions.of(options.to_spark()) == options
    assert opened(max_offsets=10, stream="clicks").options.max_records == 10
    assert opened(stream="clicks", max_bytes="1m").options.max_bytes == 2**20


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({}, "a kinesis source has no stream"),
        ({"stream": "no such/name"}, "stream"),
        ({"stream": "s", "starting_position": "newest"}, "starting_position"),
        ({"stream": "s", "max_records": 0}, "max_records"),
    ],
)
def test_words_that_are_wrong(words: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as error:
        opened(**words)
    assert said in str(error.value)
    assert error.value.exit_code == 2


def test_databricks_gets_its_own_formats_words() -> None:
    at = opened(stream="s", region="eu-west-1", starting_position="2026-11-21T10:05:00Z")
    assert at._of_databricks() == {
        "streamName": "s",
        "region": "eu-west-1",
        "initialPosition": '{"at_timestamp": "2026-11-21T10:05:00+00:00", '
        '"format": "yyyy-MM-dd\'T\'HH:mm:ssxxx"}',
    }
    assert opened(stream="s")._of_databricks()["initialPosition"] == "trim_horizon"
