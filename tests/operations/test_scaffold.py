"""`tidemill init`: what it writes runs, and it overwrites nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlglot

from children import Children
from command_line import call
from tidemill.config.pipeline_file import load
from tidemill.operations.scaffold import CDC, kinds
from tidemill.sources import registry

FILES = ("shop.yaml", "events/sample.jsonl", "test_shop.py")


def test_it_writes_a_pipeline_with_events_and_a_test(tmp_path: Path) -> None:
    answer = call("init", "shop", "--folder", tmp_path / "new", "--json")
    assert answer.code == 0
    assert answer.json == {
        "pipeline": "shop",
        "files": [str(tmp_path / "new" / name) for name in FILES],
    }
    view = load(str(tmp_path / "new" / "shop.yaml")).view("shop")
    assert len(view.shown) == 10
    events = (tmp_path / "new" / FILES[1]).read_text().splitlines()
    assert all(json.loads(event)["event_timestamp"][:10] == "2026-11-20" for event in events)
    assert not any("$" in (tmp_path / "new" / name).read_text() for name in FILES)


@pytest.mark.parametrize("kind", sorted({*kinds()} - {CDC}))
def test_it_reads_what_is_asked_for(kind: str, tmp_path: Path) -> None:
    assert call("init", "shop", "--folder", tmp_path, "--source", kind).code == 0
    definition = load(str(tmp_path / "shop.yaml"))
    assert definition.source.kind == kind
    assert definition.clock == registry.kind_of(definition.source).clock


def test_a_kind_without_a_template(tmp_path: Path) -> None:
    answer = call("init", "shop", "--folder", tmp_path, "--source", "kafak", "--json")
    assert (answer.code, answer.error["where"]) == (2, "--source")
    assert "did you mean 'kafka'?" in str(answer.error["message"])
    assert not list(tmp_path.iterdir())


def test_its_statements_parse(tmp_path: Path) -> None:
    call("init", "shop", "--folder", tmp_path)
    words = ("--view", "shop", "--pipeline", tmp_path / "shop.yaml")
    answer = call("sql", "features", *words)
    assert answer.code == 0
    assert [tree for tree in sqlglot.parse(answer.out, read="databricks") if tree]


@pytest.mark.stream
@pytest.mark.parametrize("source", [pytest.param("kafka", marks=pytest.mark.full), "cdc"])
def test_its_test_passes(tmp_path: Path, children: Children, source: str) -> None:
    call("init", "shop", "--folder", tmp_path / "new", "--source", source)
    test = tmp_path / "new" / "test_shop.py"
    child = children.python("-m", "pytest", "-q", "-p", "no:cacheprovider", test)
    assert child.ended() == 0, child.out.read_text()
    assert "1 passed" in child.out.read_text()


@pytest.mark.parametrize("there", FILES)
def test_it_overwrites_nothing(there: str, tmp_path: Path) -> None:
    path = tmp_path / there
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    answer = call("init", "shop", "--folder", tmp_path, "--json")
    assert answer.code == 2
    assert answer.error["where"] == str(path)
    assert path.read_text() == "mine"
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [path]


@pytest.mark.parametrize("name", ["my-shop", "1shop", "", "../shop", "__shop", "shöp"])
def test_a_name_that_is_no_identifier_is_refused(name: str, tmp_path: Path) -> None:
    answer = call("init", name, "--folder", tmp_path / "new", "--json")
    assert answer.code == 2
    assert answer.error["where"] == "NAME"
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = call("init", "shop", "--folder", tmp_path / "file", "--json")
    assert answer.code == 2
    assert "cannot be written" in str(answer.error["message"])
