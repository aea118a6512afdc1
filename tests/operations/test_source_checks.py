"""What doctor finds of the sources of a pipeline: its own, and its dimensions'."""

from __future__ import annotations

from pathlib import Path

import pytest

from brokers import Broker
from dimension_lakes import WORDS, declared
from runs import write_file
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Place
from tidemill.operations.source_checks import checks_of_source
from topics import source_of


def of_sources(folder: Path, changes: dict[str, object]) -> PipelineDefinition:
    dimension = {**WORDS["dimensions"][0], "source": changes}
    events = {"kind": "files", "input": str(folder / "purchases")}
    return declared(source=events, dimensions=[dimension])


def found(definition: PipelineDefinition, folder: Path) -> dict[str, tuple[bool, str]]:
    return {c.name: (c.ok, c.found) for c in checks_of_source(definition, Place(folder / "lake"))}


def test_the_folder_of_a_dimension(tmp_path: Path) -> None:
    write_file(tmp_path / "purchases", "1.jsonl", ["{}"])
    definition = of_sources(tmp_path, {"kind": "files", "input": str(tmp_path / "changes")})
    checks = found(definition, tmp_path)
    assert checks["source"] == (True, "files: it answers")
    ok, said = checks["source of customer"]
    assert not ok
    assert "there is no such folder" in said
    (tmp_path / "changes").mkdir()
    assert found(definition, tmp_path)["source of customer"] == (True, "files: it answers")


def test_the_brokers_of_a_dimension_where_the_events_folder_is_gone_too(tmp_path: Path) -> None:
    named = {"kind": "kafka", "bootstrap_servers": "127.0.0.1:1", "topics": ["t"], "timeout": "1s"}
    checks = found(of_sources(tmp_path, named), tmp_path)
    assert [name for name, (ok, _) in checks.items() if not ok] == ["source", "source of customer"]
    assert "no broker takes a connection" in checks["source of customer"][1]


@pytest.mark.kafka
@pytest.mark.usefixtures("spark")
def test_the_topic_of_a_dimension(broker: Broker, tmp_path: Path) -> None:
    write_file(tmp_path / "purchases", "1.jsonl", ["{}"])
    topic = broker.create("changes")
    checks = found(of_sources(tmp_path, source_of(broker, topic)), tmp_path)
    assert checks["jars of kafka"][0]
    assert checks["topics of customer"] == (True, f"{topic}: may be read")
    checks = found(of_sources(tmp_path, source_of(broker, "nowhere")), tmp_path)
    assert checks["source of customer"] == (False, "source: the brokers have no such topic")
