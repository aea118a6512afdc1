"""The jars that Ivy found once are taken by their paths, while they are as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.lake.session import jars

PACKAGES = ["io.delta:delta-spark:1", "a:b:2"]


@pytest.fixture
def ivy(tmp_path: Path) -> Path:
    """A folder with two jars, written down."""
    folder = tmp_path / "my jars"
    (folder / "jars").mkdir(parents=True)
    for name in ("b.jar", "a.jar"):
        (folder / "jars" / name).write_bytes(b"jar")
    listed = [*(folder / "jars" / name for name in ("b.jar", "a.jar")), Path("/elsewhere/c.jar")]
    jars.record(folder, PACKAGES, ",".join(path.as_uri() for path in listed))
    return folder


def test_the_order_of_the_class_path_is_kept(ivy: Path) -> None:
    assert jars.resolved(ivy, PACKAGES) == [ivy / "jars" / "b.jar", ivy / "jars" / "a.jar"]
    assert not list(ivy.rglob(".*")), "nothing is left half-written"


def test_other_packages_are_looked_for(ivy: Path) -> None:
    assert jars.resolved(ivy, PACKAGES[:1]) is None


def test_a_jar_that_is_gone_or_cut_is_looked_for(ivy: Path) -> None:
    (ivy / "jars" / "a.jar").write_bytes(b"j")
    assert jars.resolved(ivy, PACKAGES) is None
    (ivy / "jars" / "a.jar").unlink()
    assert jars.resolved(ivy, PACKAGES) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_record_that_says_nothing_is_none(ivy: Path, text: str) -> None:
    (file,) = (ivy / "tidemill").iterdir()
    file.write_text(text)
    assert jars.resolved(ivy, PACKAGES) is None


def test_without_a_jar_of_ivys_nothing_is_written(tmp_path: Path) -> None:
    jars.record(tmp_path, PACKAGES, "file:///elsewhere/c.jar")
    jars.record(tmp_path, PACKAGES, "")
    assert not list(tmp_path.iterdir())
