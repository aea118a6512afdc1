"""One fake Kinesis for the folder, and a stream for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinesis import CREDENTIALS, REGION, FakeKinesis, serving

# Before the session of all tests starts: the processes of Spark's own have the environment of then.
os.environ.update({**CREDENTIALS, "AWS_DEFAULT_REGION": REGION})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("kinesis")


@pytest.fixture(scope="package")
def kinesis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeKinesis]:
    with serving(tmp_path_factory.mktemp("kinesis")) as server:
        yield server


@pytest.fixture(autouse=True)
def without_faults(kinesis: FakeKinesis) -> Iterator[None]:
    yield
    kinesis.fault(throttle=0, expire=0)
