"""Publish the notebooks: each `notebooks/*.py`, in Databricks' source format, as `.ipynb`.

    # COMMAND ----------      a cell ends          ──percent──► jupytext ──► published/<name>.ipynb
    # MAGIC %md               a cell of prose

The same source gives the same file, without outputs: numbers are a lake's, not a notebook's. A test
compares them, so `make notebooks` after every change.
"""

from __future__ import annotations

import re
from pathlib import Path

import jupytext

FOLDER = Path(__file__).parents[1] / "notebooks"
HEAD = "# Databricks notebook source\n"
CELLS = re.compile(r"^# COMMAND -+\n", re.MULTILINE)
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def sources() -> list[Path]:
    """Return the notebooks, in the order of their numbers."""
    return sorted(FOLDER.glob("[0-9]*.py"))


def target(source: Path) -> Path:
    """Return where a notebook is published."""
    return FOLDER / "published" / f"{source.stem}.ipynb"


def published(source: str) -> str:
    """Return a notebook's source as the text of an .ipynb."""
    notebook = jupytext.reads(percent(source), fmt="py:percent")
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells, 1):
        cell["id"] = f"cell-{number:02}"
        cell["metadata"] = {}
    return str(jupytext.writes(notebook, fmt="ipynb")).rstrip() + "\n"


def percent(source: str) -> str:
    """Return a source of Databricks with the cell marks that jupytext reads."""
    cells = CELLS.split(source.removeprefix(HEAD))
    return "\n".join(_cell(text.strip("\n")) for text in cells)


def _cell(text: str) -> str:
    """Return a cell: prose as a comment below its mark, code as it is."""
    prose = re.sub(r"^# MAGIC ?", "", text, flags=re.MULTILINE)
    if prose.startswith("%md"):
        lines = prose.removeprefix("%md").strip().splitlines()
        return "\n".join(["# %% [markdown]", *(f"# {line}".rstrip() for line in lines), ""])
    return f"# %%\n{text}\n"


def main() -> None:
    """Write every notebook."""
    for source in sources():
        target(source).parent.mkdir(exist_ok=True)
        target(source).write_text(published(source.read_text(encoding="utf-8")), encoding="utf-8")
        print(target(source).relative_to(FOLDER.parent))


if __name__ == "__main__":
    main()
