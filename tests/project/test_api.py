"""The public API: what is documented is what there is, and nothing else is used in public."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

import tidemill

ROOT = Path(__file__).parents[2]
CLI = ROOT / "pipelines" / "tidemill" / "cli"
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
FENCE = re.compile(r"^( *)```(?:python|text)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
writing = runpy.run_path(str(ROOT / "scripts" / "api_page.py"))
# What a command needs beside a lake: words typed into values, and answers drawn; what has no lake.
BESIDE = (
    *("tidemill.errors", "tidemill.config", "tidemill.features", "tidemill.cli"),
    *("tidemill.lake.visible_text", "tidemill.lake.session.session"),
    *("tidemill.query.export", "tidemill.query.chart_axes", "tidemill.query.questions"),
    "tidemill.query.json_values",
    "tidemill.sources.registry",
    *("tidemill.databricks", "tidemill.operations.doctor", "tidemill.operations.scaffold"),
    "tidemill.operations.source_checks",
)
# The demo lets its own source go on batch by batch, `failures` explains any error that ends a
# command, and the rest are types of what is shown.
EXCEPT = {"demo.py", "exit_codes.py", "output"}


def scripts() -> Iterator[tuple[str, str]]:
    """Each piece of Python that a reader is shown."""
    for notebook in sorted(ROOT.glob("notebooks/*.py")):
        yield notebook.name, notebook.read_text(encoding="utf-8")
    for template in sorted(ROOT.glob("pipelines/tidemill/operations/templates/*.py.txt")):
        yield template.name, template.read_text(encoding="utf-8")
    for page in PAGES:
        for indent, text in FENCE.findall(page.read_text(encoding="utf-8")):
            if re.search(r"^ *(import|from) tidemill", text, re.MULTILINE):
                yield page.name, re.sub(f"^{indent}", "", text, flags=re.MULTILINE)


def used(text: str) -> set[str]:
    """The names of the package that a script uses: those it imports, and `tidemill.<name>`; a
    module below it as a whole."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tidemill":
            inside = node.module != "tidemill"
            found |= {str(node.module)} if inside else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found |= {name for name in names if name.startswith("tidemill.")}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {node.attr} if node.value.id == "tidemill" else set()
    return found


def test_the_page_is_as_the_docstrings_say() -> None:
    """Otherwise: `make api`."""
    assert writing["PAGE"].read_text(encoding="utf-8") == writing["page"]()


def test_what_is_documented_is_what_there_is() -> None:
    text = writing["PAGE"].read_text(encoding="utf-8")
    assert writing["documented"](text) == set(tidemill.__all__)
    assert sorted(set(tidemill.__all__)) == sorted(tidemill.__all__)
    assert set(dir(tidemill)) == set(tidemill.__all__)
    assert all(hasattr(tidemill, name) for name in tidemill.__all__)
    with pytest.raises(AttributeError, match="no attribute 'open_lakes'"):
        _ = tidemill.open_lakes  # type: ignore[attr-defined]


def test_every_section_names_what_there_is() -> None:
    named = [name for names in writing["SECTIONS"].values() for name in names]
    assert set(named) <= set(tidemill.__all__)
    assert len(named) == len(set(named))


@pytest.mark.parametrize("name", tidemill.__all__)
def test_each_name_says_what_it_is(name: str) -> None:
    found = getattr(tidemill, name)
    assert found.__doc__
    if inspect.isclass(found):
        own = {n: m for n, m in vars(found).items() if inspect.isfunction(m) and n[0] != "_"}
        public = [one for name, one in own.items() if not name.startswith("model_")]
        assert all(one.__doc__ for one in public)


@pytest.mark.parametrize(("where", "text"), list(scripts()))
def test_only_public_names_are_shown(where: str, text: str) -> None:
    names = used(text)
    assert names, where
    assert names <= set(tidemill.__all__), where


def test_there_is_something_to_look_at() -> None:
    found = {where for where, _ in scripts()}
    assert {"README.md", "operations.md", "01_tour.py", "test_pipeline.py.txt"} <= found


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(CLI.rglob("*.py")) if not EXCEPT & set(path.relative_to(CLI).parts)],
    ids=lambda path: path.name,
)
def test_commands_call_only_the_api(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {
        str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tidemill")
    }
    modules |= {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.startswith("tidemill")
    }
    inside = {m for m in modules if m != "tidemill" and not m.startswith(BESIDE)}
    assert not inside, inside
