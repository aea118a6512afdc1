"""Pipelines over topics of the tests' broker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from brokers import Broker
from tidemill.config.pipeline_file import SHIPPED, PipelineDefinition, load

TIMEOUT = "6s"


def source_of(broker: Broker, topic: str, **words: Any) -> dict[str, Any]:
    """The words of a source of one topic."""
    named = {"kind": "kafka", "bootstrap_servers": broker.address, "topics": [topic]}
    return {**named, "timeout": TIMEOUT, **words}


def of_topic(broker: Broker, topic: str, **words: Any) -> PipelineDefinition:
    """The shipped pipeline, fed from a topic, by the events' clock."""
    return load("engagement").overridden({"source": source_of(broker, topic, **words)})


def declare(folder: Path, source: Mapping[str, Any], **words: Any) -> Path:
    """The same as a file, which a command takes."""
    declared = yaml.safe_load((SHIPPED / "engagement.yaml").read_text())
    path = folder / "engagement.yaml"
    path.write_text(yaml.safe_dump({**declared, "source": dict(source), **words}))
    return path
