"""The package's folders: small, each name for one thing, no import in a circle, tests beside it."""

from __future__ import annotations

from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

import groups

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pipelines" / "tidemill"
TESTS = ROOT / "tests"
NO_MIRROR = {"support", "project"}
# A source's own module: the same thing of another kind.
SAME = {"source"}


def _folders() -> list[Path]:
    return [PACKAGE, *(path.parent for path in PACKAGE.rglob("*/__init__.py"))]


def _entries(folder: Path) -> list[Path]:
    """Return the modules and packages of a folder."""
    found = [path for path in folder.iterdir() if (path / "__init__.py").is_file()]
    return found + [path for path in folder.glob("*.py") if path.name != "__init__.py"]


@pytest.mark.parametrize("folder", _folders(), ids=lambda path: path.relative_to(PACKAGE.parent))
def test_a_folder_is_small(folder: Path) -> None:
    modules = [path for path in _entries(folder) if path.suffix == ".py"]
    assert len(modules) <= 12


def test_the_root_is_small() -> None:
    names = [path.name for path in _entries(PACKAGE)]
    assert len(names) <= 15, sorted(names)


def test_a_name_is_of_one_thing() -> None:
    """But for a package's main module, and the commands, which are called as what they call."""
    named: dict[str, list[str]] = defaultdict(list)
    for folder in _folders():
        for path in _entries(folder):
            command_of = folder.name == "commands" and (PACKAGE / path.stem).is_dir()
            if path.stem not in {folder.name, "__main__", *SAME} and not command_of:
                named[path.stem].append(path.relative_to(PACKAGE).as_posix())
    assert not {name: paths for name, paths in named.items() if len(paths) > 1}


def test_no_module_imports_itself_by_others() -> None:
    """Parents and children too, which import-linter lets be."""
    graph = grimp.build_graph("tidemill", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()


def test_tests_lie_as_the_package_does() -> None:
    for path in _of_tests():
        folder = path.relative_to("long") if path.is_relative_to("long") else path
        assert (PACKAGE / folder / "__init__.py").is_file() or folder.as_posix() in NO_MIRROR


def test_every_folder_of_tests_has_a_group() -> None:
    known = (*groups.MAIN, *groups.LONG, *groups.AROUND)
    for folder in _of_tests():
        assert any(map(folder.is_relative_to, known)), folder
    for name in known:
        assert (TESTS / name).is_dir(), name


def _of_tests() -> set[Path]:
    return {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
