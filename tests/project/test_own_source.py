"""A kind of source that an installed package brings: the page's own example, found and run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from children import Children
from tidemill.errors import InputError
from tidemill.sources import registry
from tidemill.sources.files import FilesSource
from tidemill.sources.generator import GeneratorSource
from tidemill.sources.source_kind import SourceContext

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own-source.md").read_text(encoding="utf-8")
PIPELINE = """\
pipeline: rooms
source: {source}
views:
  - name: rooms
    keys: [room]
    event_time: at
    schema: {{room: string}}
    features: [{{count: {{}}, over: [1h]}}]
"""


def block(language: str) -> str:
    """The page's block of code in a language."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    assert found
    return found[1]


def install(folder: Path, code: str) -> str:
    """Put a package with the page's entry point where Python finds it; return that path."""
    information = folder / "my_package-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (line,) = re.findall(r"^(\w+) = \"(.+)\"$", block("toml"), flags=re.MULTILINE)
    points = f"[{registry.GROUP}]\n{line[0]} = {line[1]}\n"
    (information / "entry_points.txt").write_text(points)
    (folder / "my_package.py").write_text(code)
    return ":".join(map(str, (folder, ROOT / "pipelines")))


def declare(folder: Path, source: str) -> Path:
    path = folder / "rooms.yaml"
    path.write_text(PIPELINE.format(source=source))
    return path


@pytest.mark.stream
def test_the_pages_example_is_a_source_like_the_shipped_ones(
    spark: SparkSession, children: Children, tmp_path: Path
) -> None:
    rows = [("hall", "2026-11-21T10:00:00Z"), ("hall", "2026-11-21T10:20:00Z")]
    table = tmp_path / "table"
    spark.createDataFrame(rows, "room STRING, at STRING").write.format("delta").save(str(table))
    pipeline = declare(tmp_path, f"{{kind: delta_table, path: {table}}}")
    path = install(tmp_path / "package", block("python"))
    run = ("run", pipeline, "--once", "--root", tmp_path / "lake", "--json")
    child = children.tidemill(*run, PYTHONPATH=path)
    assert child.ended() == 0, child.err.read_text()
    assert json.loads(child.out.read_text())["accepted"] == 2
    land = tmp_path / "lake" / "_checkpoints" / "rooms_land" / "_tidemill.json"
    assert json.loads(land.read_text())["kind"] == "delta_table"


def test_help_and_errors_know_it(children: Children, tmp_path: Path) -> None:
    path = install(tmp_path / "package", block("python"))
    shown = children.tidemill("run", "--help", PYTHONPATH=path, COLUMNS="200")
    assert shown.ended() == 0
    kinds = "files or generator or kafka or kinesis or delta_feed or delta_table"
    assert kinds in shown.out.read_text()
    pipeline = declare(tmp_path, "{kind: delta_tabel}")
    refused = children.tidemill("plan", pipeline, "--root", tmp_path, "--json", PYTHONPATH=path)
    assert refused.ended() == 2
    error = json.loads(refused.out.read_text())["error"]
    assert error["message"] == "unknown kind 'delta_tabel'; did you mean 'delta_table'?"
    assert error["where"] == f"{pipeline}:2: source"


def test_one_that_cannot_be_loaded_is_named_when_it_is_asked_for(
    children: Children, tmp_path: Path
) -> None:
    path = install(tmp_path / "package", "raise RuntimeError('no driver')\n")
    pipeline = declare(tmp_path, "{kind: delta_table}")
    refused = children.tidemill("plan", pipeline, "--root", tmp_path, "--json", PYTHONPATH=path)
    assert refused.ended() == 2
    assert "cannot be loaded: no driver" in json.loads(refused.out.read_text())["error"]["message"]


@pytest.mark.parametrize("said", ["pulsar", "s3"])
def test_an_unknown_kind_names_those_that_are_known(said: str, tmp_path: Path) -> None:
    from tidemill.config.pipeline_file import load
    from tidemill.errors import DefinitionError, UsageError

    known = f"unknown kind {said!r}; known: files, generator, kafka, kinesis, delta_feed"
    with pytest.raises(DefinitionError) as refused:
        load(str(declare(tmp_path, f"{{kind: {said}}}")))
    assert refused.value.message == known
    with pytest.raises(UsageError) as unknown:
        load("engagement").overridden({"source": {"kind": said}})
    assert unknown.value.message == known


def test_a_kind_opens_what_its_words_say(tmp_path: Path) -> None:
    context = SourceContext("rooms", {"room": "string"}, max_files=7, max_records=100)
    words = FilesSource(kind="files", input=str(tmp_path))
    files = registry.kind_of(words).open(words, context)
    assert files.identity() == {"kind": "files", "folder": str(tmp_path)}
    with pytest.raises(InputError, match="has no folder"):
        registry.kind_of(words).open(FilesSource(kind="files"), context)


@pytest.mark.parametrize(
    ("known", "start"),
    [
        ({"kind": "generator", "start": "2026-11-20T10:00:00Z"}, "2026-11-20T10:00:00Z"),
        ({"kind": "other", "start": "soon"}, "2026-11-21T11:00:00Z"),
    ],
)
def test_a_generator_goes_on_from_its_first_start(known: dict, start: str) -> None:
    from lakes import at

    words = GeneratorSource(kind="generator", minutes=60)
    context = SourceContext("rooms", now=at("12:00"), known=known)
    made = registry.kind_of(words).open(words, context)
    assert made.identity()["start"] == start
