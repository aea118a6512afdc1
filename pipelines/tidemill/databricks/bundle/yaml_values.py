"""YAML and JSON as values that know their lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tidemill.databricks.bundle.issue import Finding

Steps = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """A file's value, and the line of each of its parts by the steps that lead there."""

    file: str
    value: Any
    lines: Mapping[Steps, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def line(self, *steps: str | int) -> int:
        """Return the line of the part, or of the nearest part around it."""
        while steps and steps not in self.lines:
            steps = steps[:-1]
        return self.lines.get(steps, 1)

    def finding(self, steps: Steps, message: str, expected: str | None = None) -> Finding:
        """Return what is wrong with the part."""
        return Finding(self.file, self.line(*steps), message, expected)

    def texts(self) -> Iterator[tuple[Steps, str]]:
        """Yield every text in the file, with the steps that lead to it."""
        yield from _texts((), self.value)


def _texts(steps: Steps, value: Any) -> Iterator[tuple[Steps, str]]:
    if isinstance(value, str):
        yield steps, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _texts((*steps, key), part)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _texts((*steps, number), part)


def read(folder: Path, file: str) -> Document:
    """Return the document of a YAML or JSON file; what cannot be read is one finding, and no
    value."""
    try:
        text = (folder / file).read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        return Document(file, {}, findings=(Finding(file, 1, f"cannot be read: {error}"),))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return Document(file, {}, findings=(Finding(file, line, f"is no YAML: {error.problem}"),))
    except yaml.YAMLError as error:
        return Document(file, {}, findings=(Finding(file, 1, f"is no YAML: {error}"),))
    if node is None:
        return Document(file, {})
    reader = _Reader(file)
    return Document(file, reader.value((), node), reader.lines, tuple(reader.findings))


@dataclass
class _Reader:
    file: str
    lines: dict[Steps, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    scalars: yaml.SafeLoader = field(default_factory=lambda: yaml.SafeLoader(""))

    def value(self, steps: Steps, node: yaml.Node) -> Any:
        self.lines.setdefault(steps, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return dict(self._item(steps, key, value) for key, value in node.value)
        if isinstance(node, yaml.SequenceNode):
            return [self.value((*steps, i), each) for i, each in enumerate(node.value)]
        return self.scalars.construct_object(node)

    def _item(self, steps: Steps, key: yaml.Node, value: yaml.Node) -> tuple[str, Any]:
        name, line = str(key.value), key.start_mark.line + 1
        if (*steps, name) in self.lines:
            self.findings.append(Finding(self.file, line, f"{name!r} stands here twice"))
        self.lines[(*steps, name)] = line
        return name, self.value((*steps, name), value)
