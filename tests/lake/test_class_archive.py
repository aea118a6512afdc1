"""The archive of classes: whose it is, how it is made, and that nothing needs it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tidemill.lake.session import class_archive, ivy, session
from tidemill.lake.session.local_machine import spark_jars
from tidemill.sources import kafka

WRITES = f"import os, pathlib; pathlib.Path(os.environ[{class_archive.MAKING!r}]).write_text('a')"
# A process that outlives its parent, as the JVM does, and writes as it ends.
LATER = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(2); " + {WRITES!r}])
time.sleep(1)
"""


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return class_archive.folder() / "mine.jsa"


@pytest.mark.parametrize("code", [WRITES, LATER], ids=["at once", "by a child that stays"])
def test_it_is_what_the_process_leaves(archive: Path, code: str) -> None:
    archive.parent.mkdir()
    (archive.parent / "of-another-java.jsa").write_text("old")
    (archive.parent / ".of-one-that-died.jsa.1").write_text("half")
    assert class_archive.make(archive, [sys.executable, "-c", code]) == 1
    assert [path.name for path in archive.parent.iterdir()] == ["mine.jsa"]


@pytest.mark.parametrize("code", ["pass", "raise SystemExit(1)"], ids=["nothing", "an error"])
def test_a_process_that_leaves_none(archive: Path, code: str) -> None:
    assert class_archive.make(archive, [sys.executable, "-c", code]) == 0
    assert not list(archive.parent.iterdir())


def test_it_is_of_one_java_with_its_jars_and_flags(archive: Path, tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"jar")
    one = class_archive.path([jar], "-Xa")
    assert one is not None and one == class_archive.path([jar], "-Xa")
    assert one != class_archive.path([jar], "-Xb")
    assert one != class_archive.path([], "-Xa")
    os.utime(jar, (1, 1))
    assert one != class_archive.path([jar], "-Xa")
    jar.unlink()
    assert class_archive.path([jar], "-Xa") is None


def test_a_session_takes_it_where_it_is_there(archive: Path) -> None:
    mine = class_archive.path([], "")
    assert mine is not None
    assert class_archive.options([], "") == ""
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("a")
    assert f"-XX:SharedArchiveFile={mine} -Xshare:auto" in class_archive.options([], "")


def test_a_process_that_makes_it_writes_it(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(class_archive.MAKING, "/some/file")
    assert class_archive.options([], "").startswith("-XX:ArchiveClassesAtExit=/some/file ")


def test_this_machine_has_one_place_for_it() -> None:
    place = session.class_archive()
    assert place is not None and place.suffix == ".jsa"


def test_jars_of_a_source_stand_behind_all_that_it_was_made_of(spark: SparkSession) -> None:
    """An archive fits a class path that begins as its own does; the launcher's word for the rest is
    taken back."""
    jvm: Any = spark._jvm
    there = jvm.java.lang.System.getProperty("java.class.path").split(":")
    named = [Path(name).name for name in there]
    sources = [path.name for path in ivy.class_path(kafka.JARS)]
    places = [named.index(name) for name in sources]
    assert named[-len(places) :] == sources
    assert min(places) > max(named.index(path.name) for path in spark_jars().glob("*.jar"))
    assert "SPARK_DIST_CLASSPATH" not in os.environ
