"""Options of the command line that the kinds of sources declare."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import call
from tidemill.cli.source_options import Said
from tidemill.config.pipeline_file import load
from tidemill.errors import UsageError
from tidemill.sources.files import FilesSource
from tidemill.sources.generator import GeneratorSource


def test_an_option_alone_names_its_kind() -> None:
    declared = GeneratorSource(kind="generator")
    assert Said(None, {"input": "/in"}).over(declared)["source"] == {
        "kind": "files",
        "input": "/in",
    }


def test_a_word_that_is_typed_goes_over_the_declared_one() -> None:
    declared = FilesSource(kind="files", input="/in")
    assert Said("files").over(declared) == {"source": {"kind": "files", "input": "/in"}}
    assert Said(None, {"input": "/b"}).over(declared) == {
        "source": {"kind": "files", "input": "/b"}
    }


def test_without_either_nothing_is_said() -> None:
    assert Said().over(GeneratorSource(kind="generator")) == {}


def test_a_path_counts_from_where_it_is_typed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = call("run", "engagement", "--input", "none", "--once", "--json")
    assert (answer.code, answer.error["where"]) == (2, str(tmp_path / "none"))


def test_an_option_of_another_kind_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        Said("generator", {"input": "/in"}).over(load("engagement").source)
    assert str(refused.value) == "--input: is no option of a generator source (expected: no option)"
