"""What README.md and docs show is true: Python runs, commands parse, targets and links exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import options, parsed
from tidemill.config.pipeline_file import shipped
from tidemill.features import aggregates

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
SAYING = ("README.md", "commands.md")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def _blocks(kind: str) -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for found, text in FENCE.findall(page.read_text(encoding="utf-8")):
            if found == kind:
                yield page.name, text


def _shown(program: str) -> list[tuple[str, str]]:
    """Each command after a prompt in a console block."""
    lines = re.compile(rf"^\$ ({program} .+)$", re.MULTILINE)
    found = [(page, line) for page, text in _blocks("console") for line in lines.findall(text)]
    return list(dict.fromkeys(found))


def _named(program: str) -> list[tuple[str, str]]:
    """Each command that running text names, whole or in part."""
    said = re.compile(rf"`({program} [^`]+)`")
    pages = [(page.name, FENCE.sub("", page.read_text(encoding="utf-8"))) for page in PAGES]
    found = [(page, " ".join(line.split())) for page, text in pages for line in said.findall(text)]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize(("page", "text"), list(_blocks("python")))
def test_python_runs(page: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(text, page, "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert "print(" not in text or printed


@pytest.mark.parametrize(("page", "line"), _shown("tidemill"))
def test_a_shown_command_parses(page: str, line: str) -> None:
    parsed(shlex.split(line)[1:])


@pytest.mark.parametrize(("page", "line"), _named("tidemill"))
def test_a_named_command_exists_with_its_options(page: str, line: str) -> None:
    _, name, *words = shlex.split(line)
    assert {word for word in words if word.startswith("--")} <= options(name)


@pytest.mark.parametrize(("page", "line"), [*_shown("make"), *_named("make")])
def test_a_make_target_exists(page: str, line: str) -> None:
    assert line.split()[1] in TARGETS


def test_readme_shows_the_two_commands() -> None:
    assert {("README.md", "make demo"), ("README.md", "make test")} <= set(_shown("make"))


def test_readme_is_at_most_100_lines_and_shows_a_result_within_40() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 100
    top = "\n".join(lines[:40])
    assert "$ make demo" in top
    assert "gold version" in top
    assert "view_count" in top


def test_the_numbers_of_what_is_shipped() -> None:
    said = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.name in SAYING)
    assert set(re.findall(r"\[(\d+) aggregates\]", said)) == {str(len(aggregates.SHIPPED))}
    assert set(re.findall(r"(\d+) (?:pipelines are )?\[shipped\]", said)) == {str(len(shipped()))}


def test_the_demo_as_shown_is_at_most_100_columns_wide() -> None:
    pages = [(page, text) for page, text in _blocks("text") if "gold version" in text]
    assert {page for page, _ in pages} == {"README.md", "commands.md"}
    lines = [(page, line) for page, text in pages for line in text.splitlines()]
    assert not [(page, line) for page, line in lines if len(line) > 100]


def test_readme_names_every_folder() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    _, _, table = text.partition("## Where things are\n")
    first = re.findall(r"^\| (.+?) \|", table, re.MULTILINE)
    named = [name for cell in first for name in re.findall(r"`([\w/]+)`", cell)]
    package = ROOT / "pipelines" / "tidemill"
    inner = {path.name for path in package.iterdir() if path.is_dir()} - {"__pycache__"}
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines()}
    outer = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."}
    outer -= {"pipelines", *ignored}
    assert sorted(named) == sorted(["pipelines/tidemill", *inner, *outer])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"https?://", link):
            continue
        path, _, heading = link.partition("#")
        there = (page.parent / path) if path else page
        assert there.exists(), f"{page.name}: {link}"
        if heading:
            assert heading in _headings(there), f"{page.name}: {link}"


def _headings(page: Path) -> set[str]:
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in found}


def test_the_glossary_has_each_term_once() -> None:
    text = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    _, _, rest = text.partition("## Glossary\n")
    table, _, _ = rest.partition("\n## ")
    assert re.findall(r"^\| \*\*(.+?)\*\* \|", table, re.MULTILINE) == [
        "feature view",
        "SQL view",
        "bucket",
        "partial",
        "window",
        "offset",
        "ledger",
        "generation",
        "refresh",
        "recompute",
        "batch",
    ]


def test_messages_name_headings_that_exist() -> None:
    """An error that sends people to a runbook names its heading."""
    package = "".join(path.read_text() for path in (ROOT / "pipelines").rglob("*.py"))
    named = re.findall(r"see '([^']+)' in (docs/\w+\.md)", package)
    assert named
    for heading, page in named:
        assert re.search(rf"^## {heading}$", (ROOT / page).read_text(), re.MULTILINE)
