"""One Spark session for the whole run, and lakes in temporary folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import brokers
import command_line
import executors
import groups
import hostile as hostility
import on_connect
import quick_spark
from brokers import Broker
from children import Children
from lakes import Event, Lakes, at
from runs import Small, records_of, write_file
from tidemill.config.pipeline_file import load
from tidemill.config.settings import Place
from tidemill.lake.open import open_for_writing
from tidemill.lake.session import ivy
from tidemill.lake.session.session import SMALL_DATA, local_session
from tidemill.sources import kafka

# Before the JVM starts, from which Python workers have it: a registry of MLflow in a folder, which
# it takes no longer without being told so, and nobody is told.
os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", help="one part of the tests, such as the second of six: 2/6")
    parser.addoption("--executors", action="store_true", help="run tasks in processes of their own")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Mark the tests around the main job; on Spark Connect, skip what cannot run there. Of those
    that are chosen (`-m`, `-k`), keep one part where that is asked for."""
    groups.mark(items)
    on_connect.skip(items)
    yield
    if words := config.getoption("--part"):
        items[:], others = groups.part(items, words)
        config.hook.pytest_deselected(items=others)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The run's only session, set for many small queries: planning costs more than running."""
    is_long = len(request.session.items) > quick_spark.LONG_RUN
    session = local_session(
        driver_memory="3g",
        extra={
            **SMALL_DATA,
            **({} if is_long else quick_spark.FIRST_COMPILER),
            "spark.driver.extraClassPath": ":".join(map(str, ivy.class_path(kafka.JARS))),
            **(executors.settings() if request.config.getoption("--executors") else {}),
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def apart(spark: SparkSession) -> Iterator[SparkSession]:
    """A session of its own, its views dropped at the end: they hide no table from other tests."""
    session = spark.newSession()
    yield session
    for row in session.sql("SHOW TABLES").collect():
        if row["isTemporary"]:
            session.catalog.dropTempView(row["tableName"])


@pytest.fixture
def lakes(spark: SparkSession, tmp_path: Path, empty_lake: Path) -> Lakes:
    """Makes lakes in this test's own folder."""
    return Lakes(spark, tmp_path, empty_lake)


@pytest.fixture(scope="session")
def empty_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of the shipped definition with nothing in it, to be copied."""
    root = tmp_path_factory.mktemp("empty") / "lake"
    open_for_writing(spark, Place(root), load("engagement"))
    return root


@pytest.fixture(scope="session")
def broker(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The run's only Kafka broker, a real one; a test makes topics of its own."""
    with brokers.running(spark, tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def children(tmp_path: Path) -> Children:
    """Starts child processes, their output in this test's own folder."""
    return Children(tmp_path)


@pytest.fixture(scope="session")
def small(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Small:
    """A lake made by `tidemill run --once` of one small file; copy it before a change."""
    folder = tmp_path_factory.mktemp("small")
    events: list[Event] = [
        ("a1", "p1", "g", "view", at("10:00")),
        ("a2", "p1", "g", "view", at("11:30")),
        ("a3", "p1", "h", "select", at("11:30:59.9")),
        ("a4", "p2", "g", "highlight", at("20T23:30")),
        ("a5", "p2", "g", "view", at("20T11:30")),
        ("a2", "p1", "g", "view", at("11:30")),
    ]
    records = records_of(events, ["{}", '{"event_id'])
    write_file(folder / "input", "1.jsonl", records, age=60)
    words = ("--source", "files", "--input", folder / "input", "--once", "--root", folder / "lake")
    answer = command_line.call("run", "engagement", *words, "--json")
    assert answer.code == 0, answer
    return Small(folder / "lake", folder / "input", events, records, answer.json)


@pytest.fixture(scope="session")
def hostile(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Small:
    """A lake whose keys, payloads and file names try to be markup."""
    return hostility.lake_of(tmp_path_factory.mktemp("hostile"))
