"""Write docs/api.md from the docstrings of the public names.

    tidemill.__all__ ──sections──► one line for each name; for a class one for each of its methods

A test compares the page with what this gives: `make api` after a change of a public docstring.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tidemill

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
HEAD = """<!-- Written by scripts/api_page.py; change the docstring, then `make api`. -->

# The API

`import tidemill` is enough for a notebook, a job or a test; the command line calls the same. These
names are stable. Every other module is private, and may move.

```python
import tidemill

help(tidemill.open_lake)  # a lake in a folder, or in a catalog's schema
help(tidemill.Lake.features)  # its gold table, as it is or as of a time
print(tidemill.count().by("event_type", ["view"]).over("1h", "1d"))
```
"""
SECTIONS = {
    "Open a lake": ("open_lake",),
    "What a lake answers": ("Lake", "Quarantine", "Status", "GoldVersion"),
    "Declare features": (
        *("FeatureView", "Window", "PipelineDefinition", "load", "statement", "contains"),
        *("aggregate", "Aggregate", "Part", "Parameter"),
    ),
    "Bring a source": (
        *("Source", "SourceKind", "SourceWords", "SourceContext", "SourceOption"),
        "register_kinesis",
    ),
    "Bring a processor of streams": ("ProcessorKind", "ProcessorOptions"),
    "Serve features": ("serve", "FeatureClient", "AsyncFeatureClient"),
    "Where and when": ("Place", "Clock"),
    "Charts": ("chart", "show"),
    "Errors": ("errors", "TidemillError"),
}
AGGREGATES = "Aggregates"
ROWS = "| name | what it is |\n|---|---|"


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for title, names in sections().items():
        classes = [name for name in names if _has_members(name)]
        parts.append(f"## {title}\n")
        parts.append(_rows((_call(name, getattr(tidemill, name)), name) for name in names))
        parts += [_members(name) for name in classes]
        if "errors" in names:
            tree = str(tidemill.errors.__doc__).split("\n\n")[1]
            parts.append(f"```text\n{tree}\n```\n")
    return "\n".join(parts)


def sections() -> dict[str, tuple[str, ...]]:
    """Return the public names by section; the aggregates are those that no section names."""
    named = {name for names in SECTIONS.values() for name in names}
    others = tuple(name for name in tidemill.__all__ if name not in named)
    return {**SECTIONS, AGGREGATES: others}


def documented(text: str) -> set[str]:
    """Return the top-level names of a page: the first word of a row that has no point in it."""
    return {name for name in re.findall(r"^\| `([\w.]+)", text, re.MULTILINE) if "." not in name}


def _has_members(name: str) -> bool:
    return name in ("Lake", "Quarantine", "Status", "GoldVersion", "FeatureClient")


def _members(name: str) -> str:
    """Return the lines of a class: its fields, else its methods, in the order of the source."""
    kind = getattr(tidemill, name)
    if dataclasses.is_dataclass(kind):
        fields = ", ".join(f"`{field.name}`" for field in dataclasses.fields(kind))
        return f"A `{name}` has {fields}.\n"
    members = [n for n in vars(kind) if not n.startswith("_")]
    rows = [(_call(f"{name}.{n}", inspect.getattr_static(kind, n)), f"{name}.{n}") for n in members]
    return _rows(iter(rows))


def _rows(rows: Iterator[tuple[str, str]]) -> str:
    lines = [f"| `{call}` | {_said(name)} |" for call, name in rows]
    return "\n".join([ROWS, *lines, ""])


def _said(name: str) -> str:
    """Return the first paragraph of a name's docstring on one line."""
    if name == "errors":
        return "Every error Tidemill raises on purpose; a message says what to do."
    first, _, member = name.partition(".")
    found = getattr(tidemill, first)
    found = inspect.getattr_static(found, member) if member else found
    text = inspect.getdoc(found) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def _call(name: str, found: Any) -> str:
    """Return how a name is called: its parameters with their defaults, no types."""
    if not inspect.isfunction(found):
        return name
    parameters = list(inspect.signature(found).parameters.values())
    if parameters and parameters[0].name == "self":
        parameters = parameters[1:]
    return f"{name}{inspect.Signature([_untyped(one) for one in parameters])}"


def _untyped(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter without its type, and a default that is a function by its name."""
    default = parameter.default
    if inspect.isfunction(default):
        default = _Named(default.__name__)
    return parameter.replace(annotation=inspect.Parameter.empty, default=default)


class _Named(str):
    """A name that is shown without quotes."""

    def __repr__(self) -> str:
        """Return the name."""
        return str(self)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(PAGE.parents[1]))


if __name__ == "__main__":
    main()
