"""docs/architecture.md is true: names and files exist, trees are calls, the map is whole."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tidemill.lake import statements

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pipelines" / "tidemill"
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
FOLDERS = sorted(
    folder.relative_to(PACKAGE).as_posix()
    for folder in PACKAGE.rglob("*")
    if folder.is_dir() and folder.name != "__pycache__"
)
TOP = [folder for folder in FOLDERS if "/" not in folder]
FENCE = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]*)+)`")
NAME = re.compile(rf"(?<![\w/.])(?:{'|'.join(TOP)})(?:\.\w+)+")
NAMES = sorted(set(NAME.findall(PATH.sub("", TEXT))) - {"databricks.yml"})


def _found(name: str) -> Any:
    """The module, class, function or value of a dotted name."""
    found: Any = import_module("tidemill")
    for word in name.split("."):
        module = inspect.ismodule(found) and f"{found.__name__}.{word}"
        if module and hasattr(found, "__path__") and find_spec(module):
            found = import_module(module)
        else:
            assert hasattr(found, word), f"{name}: no {word}"
            found = getattr(found, word)
    return found


def _calls() -> Iterator[tuple[str, str]]:
    """Each name of a tree with the name above it, which is indented less."""
    for text in FENCE.findall(TEXT):
        above: list[tuple[int, str]] = []
        for line in text.splitlines():
            name = NAME.match(line.strip())
            if not name:
                continue
            depth = len(line) - len(line.lstrip())
            above = [one for one in above if one[0] < depth]
            if above:
                yield above[-1][1], name[0]
            above.append((depth, name[0]))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_exists(name: str) -> None:
    _found(name)


@pytest.mark.parametrize(("caller", "called"), list(_calls()))
def test_a_function_is_named_by_the_one_above_it(caller: str, called: str) -> None:
    _found(called)
    assert re.search(rf"\b{called.rpartition('.')[2]}\b", inspect.getsource(_found(caller)))


@pytest.mark.parametrize("path", sorted(set(PATH.findall(TEXT))))
def test_a_path_exists(path: str) -> None:
    assert (ROOT / path).exists() or (PACKAGE / path).is_dir()


def test_a_statement_exists() -> None:
    assert set(re.findall(r"(?<![\w/])(\w+)\.sql\b", TEXT)) <= set(statements.names())


def test_the_map_has_every_folder_once() -> None:
    _, _, rest = TEXT.partition("## The map\n")
    table, _, _ = rest.partition("\n## ")
    assert sorted(re.findall(r"^\| `([\w/]+)` \|", table, re.MULTILINE)) == FOLDERS


def test_the_order_of_imports_is_the_one_that_is_checked() -> None:
    _, _, rest = TEXT.partition("## Who may import whom\n")
    contract = re.search(
        r"^layers = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL
    )
    assert contract
    assert FENCE.findall(rest)[0].splitlines() == re.findall(r'"(.+)"', contract[1])
