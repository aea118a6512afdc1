"""The words of a Kafka source: what a file may say, what is refused, and with which sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidemill.config.pipeline_file import load
from tidemill.errors import DefinitionError, InputError, UsageError
from tidemill.lake.session import ivy
from tidemill.sources import registry
from tidemill.sources.kafka import JARS, KIND, reader_options
from tidemill.sources.kafka.words import KafkaSource
from tidemill.sources.source_kind import SourceContext

BROKERS = {"kind": "kafka", "bootstrap_servers": "h:1"}


def declared(folder: Path, source: str, clock: str = "") -> Path:
    path = folder / "plays.yaml"
    path.write_text(
        f"pipeline: plays\nsource: {source}\n{clock}views:\n  - name: plays\n    keys: [song]\n"
        "    event_time: at\n    schema: {song: string}\n"
        "    features: [{count: {}, over: [1h]}]\n"
    )
    return path


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{kind: kafka, topics: [a], pattern: b.*}", "topics and a pattern are two things"),
        ("{kind: kafka, topic: a}", "unknown word 'topic'; did you mean 'topics'?"),
        ("{kind: kafka, topics: [a], payload: avro}", "payload avro takes a schema"),
        ("{kind: kafka, topics: [a], schema: {file: a}}", "payload json takes no schema"),
        ("{kind: kafka, payload: avro, schema: {}}", "a schema is a file or a registry's"),
        ("{kind: kafka, payload: protobuf, schema: {file: a}}", "and its message"),
        ("{kind: kafka, security: {protocol: SASL_SSL}}", "takes a username and a password"),
        ("{kind: kafka, starting_offsets: soon}", "starting_offsets"),
    ],
)
def test_a_wrong_word(tmp_path: Path, source: str, message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        load(str(declared(tmp_path, source)))
    assert message in str(refused.value)


def test_a_secret_in_the_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    secret = "{kind: kafka, security: {protocol: SASL_SSL, username: u, password: hunter2}}"
    with pytest.raises(DefinitionError, match=r"write \$\{env:NAME\}") as refused:
        load(str(declared(tmp_path, secret)))
    assert "hunter2" not in str(refused.value)


def test_it_goes_by_the_wall_clock_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    source = "{kind: kafka, topics: [a]}"
    assert load(str(declared(tmp_path, source))).clock == "wall"
    assert load(str(declared(tmp_path, source, "clock: event\n"))).clock == "event"
    assert load(str(declared(tmp_path, "{kind: generator}"))).clock == "event"
    files = load(str(declared(tmp_path, source))).overridden({"source": {"kind": "files"}})
    assert files.clock == "event"


@pytest.mark.parametrize(
    ("words", "message"),
    [({"topics": "a"}, "has no brokers"), ({"bootstrap_servers": "h:1"}, "has no topic")],
)
def test_what_it_cannot_do_without(words: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        KIND.open(KafkaSource(kind="kafka", **words), SourceContext("plays"))


def test_topics_and_offsets_may_be_typed() -> None:
    words = KafkaSource(kind="kafka", topics="a, b", starting_offsets='{"a": {"0": 7}}')
    assert words.topics == ("a", "b")
    assert words.starting_offsets == {"a": {"0": 7}}
    over = load("engagement").overridden({"source": {"kind": "kafka", "topics": "a,b"}})
    named = over.source.model_copy(update={"bootstrap_servers": "h:1"})
    source = registry.kind_of(over.source).open(named, SourceContext("e"))
    assert source.identity() == {"kind": "kafka", "topics": "a,b"}


def test_a_pattern_is_an_identity_of_its_own() -> None:
    words = KafkaSource(**BROKERS, pattern="a.*")
    assert KIND.open(words, SourceContext("e")).identity() == {"kind": "kafka", "pattern": "a.*"}


def test_the_reader_gets_what_the_words_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", 'a"b\\')
    security: dict[str, Any] = {"protocol": "SASL_SSL", "username": "u", "password": "${env:PW}"}
    words = KafkaSource(
        **BROKERS, topics=["a"], security=security, min_partitions=8, fail_on_data_loss=False
    )
    options = reader_options.streaming(words, 500)
    assert options["subscribe"] == "a"
    assert (options["maxOffsetsPerTrigger"], options["minPartitions"]) == ("500", "8")
    assert options["failOnDataLoss"] == "false"
    assert options["kafka.sasl.mechanism"] == "PLAIN"
    assert 'password="a\\"b\\\\";' in options["kafka.sasl.jaas.config"]


def test_a_secret_that_is_not_set() -> None:
    security = {"protocol": "SASL_SSL", "username": "u", "password": "${env:NOT_SET_HERE}"}
    with pytest.raises(UsageError, match="NOT_SET_HERE is not set"):
        reader_options.connecting(KafkaSource(**BROKERS, topics=["a"], security=security))


def test_jars_have_exact_coordinates() -> None:
    assert [path.name for path in ivy.class_path(JARS)][-1].endswith("commons-pool2-2.13.1.jar")
    assert ivy.missing(["org.example:none:1.0"]) == ["org.example:none:1.0"]
