"""A file of the bundle: its values, their lines, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemill.config.yaml_values import Steps, YamlError, parse
from tidemill.databricks.bundle.issue import Finding


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
        parsed = parse((folder / file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        return Document(file, {}, findings=(Finding(file, 1, f"cannot be read: {error}"),))
    except YamlError as error:
        return Document(file, {}, findings=(Finding(file, error.line, error.message),))
    repeated = (
        Finding(file, line, f"{name!r} stands here twice") for name, line in parsed.repeated
    )
    value = {} if parsed.node is None else parsed.value
    return Document(file, value, parsed.lines, tuple(repeated))
