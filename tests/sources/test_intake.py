"""What becomes of files that are read: archived or deleted, once their batch is committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import Answer, call
from lakes import Event, at, payload
from runs import write_file
from tidemill.sources import registry
from tidemill.sources.files import FilesSource
from tidemill.sources.files.intake import Intake
from tidemill.sources.source_kind import SourceContext
from topics import declare

EVENTS: list[Event] = [("a", "p", "g", "view", at("10:00")), ("b", "p", "g", "view", at("10:01"))]


def run(folder: Path, **words: object) -> Answer:
    source = {"kind": "files", "input": str(folder / "in"), **words}
    file = declare(folder, source, max_files_per_trigger=1)
    return call("run", file, "--once", "--root", folder / "lake", "--json")


@pytest.mark.stream
@pytest.mark.parametrize("after", ["archive", "delete"])
def test_files_that_are_read_leave(after: str, tmp_path: Path) -> None:
    """When the next batch begins. A file that comes late and is old is read; then an empty folder
    is no error."""
    words = {"after": after, **({"archive": str(tmp_path / "done")} if after == "archive" else {})}
    folder = tmp_path / "in"
    for number, event in enumerate(EVENTS):
        write_file(folder, f"{number}.jsonl", [payload(event)], age=60 - number)
    assert run(tmp_path, **words).json["accepted"] == 2
    assert names(folder) == ["1.jsonl"]
    late = payload(("c", "p", "g", "view", at("10:02")))
    write_file(folder, "late.jsonl", [late], age=30 * 86400)
    assert run(tmp_path, **words).json["accepted"] == 1
    assert names(folder) == ["late.jsonl"]
    archived = ["0.jsonl", "1.jsonl"] if after == "archive" else []
    assert names(tmp_path / "done") == archived
    (folder / "late.jsonl").unlink()
    nothing = run(tmp_path, **words)
    assert (nothing.code, nothing.json["accepted"]) == (0, 0)


def names(folder: Path) -> list[str]:
    """The files of a folder and those below it."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_an_archive_inside_the_folder_is_refused(tmp_path: Path) -> None:
    write_file(tmp_path / "in", "1.jsonl", ["{}"])
    answer = run(tmp_path, after="archive", archive=str(tmp_path / "in" / "done"))
    assert (answer.code, answer.error["where"]) == (2, str(tmp_path / "in" / "done"))


def test_an_archive_without_a_folder_is_refused(tmp_path: Path) -> None:
    answer = run(tmp_path, after="archive")
    assert answer.code == 2
    assert "go together" in str(answer.error["message"])


def test_auto_loader_elsewhere_is_refused(tmp_path: Path) -> None:
    write_file(tmp_path / "in", "1.jsonl", ["{}"])
    answer = run(tmp_path, auto_loader=True)
    assert (answer.code, answer.error["where"]) == (2, "source.auto_loader")


class Recorder:
    """Stands for a session's stream reader: Auto Loader exists on Databricks alone."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}

    @property
    def readStream(self) -> Recorder:
        return self

    def format(self, name: str) -> Recorder:
        self.said["format"] = name
        return self

    def options(self, **said: str) -> Recorder:
        self.said |= said
        return self


def test_auto_loader_gets_the_same_words() -> None:
    words = FilesSource(kind="files", input="/in", after="delete", auto_loader=True)
    source = registry.kind_of(words).open(words, SourceContext("plays", max_files=7))
    assert source.identity() == {"kind": "files", "folder": "/in", "reader": "auto_loader"}
    said = source.intake.reader(Recorder(), "text", 7).said
    assert said["format"] == "cloudFiles"
    assert (said["cloudFiles.format"], said["cloudFiles.maxFilesPerTrigger"]) == ("text", "7")
    assert said["cloudFiles.cleanSource"] == "DELETE"


def test_what_is_kept_is_not_cleaned() -> None:
    assert not Intake().removes
