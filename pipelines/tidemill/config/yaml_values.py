"""YAML and JSON as values that know their lines; the one place that parses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

DEEPEST = 50  # lists and mappings inside one another
Steps = tuple[str | int, ...]
_TEXT = "tag:yaml.org,2002:str"


class YamlError(ValueError):
    """A text that is not taken as YAML; `line` is where, from 1."""

    def __init__(self, message: str, line: int):
        """Hold the message and its line."""
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True)
class Parsed:
    """What a text holds: its value, the keys of mappings as text, None for an empty text.

    `lines` has the line of each part by the steps that lead there, of a value in a mapping its
    key's; `repeated` each key that stands twice in a mapping, with the line of the second.
    """

    value: Any = None
    node: yaml.Node | None = None
    lines: Mapping[Steps, int] = field(default_factory=dict)
    repeated: tuple[tuple[str, int], ...] = ()


def parse(text: str, *, strict: bool = False) -> Parsed:
    """Return what the text holds; `strict` refuses what hides a value: aliases, tags, and keys that
    YAML reads as no text, such as `on` and `null`.

    YamlError for a text that is no YAML, or is nested too deeply.
    """
    try:
        _check_events(text, strict=strict)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            return Parsed()
        reader = _Reader(strict)
        value = reader.value((), node)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise YamlError(f"is no YAML: {_problem(error)}", line) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(f"is no YAML: {error.reason}", line) from error
    return Parsed(value, node, reader.lines, tuple(reader.repeated))


def line_of(part: yaml.Node | yaml.Event) -> int:
    """Return the line on which a part of the text begins, from 1."""
    return part.start_mark.line + 1 if part.start_mark else 1


def _problem(error: yaml.MarkedYAMLError) -> str:
    problem = str(error.problem)
    return f"{error.context}, {problem}" if problem.startswith("but ") else problem


def _check_events(text: str, *, strict: bool) -> None:
    """Refuse what is nested too deeply to be composed and, if strict, aliases and tags."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        tag, line = getattr(event, "tag", None), line_of(event)
        if strict and isinstance(event, yaml.AliasEvent):
            raise YamlError("YAML aliases (*name) are not taken", line)
        if strict and tag:
            raise YamlError(f"YAML tags ({tag}) are not taken", line)
        if depth > DEEPEST:
            raise YamlError("is nested too deeply", line)


@dataclass
class _Reader:
    strict: bool
    lines: dict[Steps, int] = field(default_factory=dict)
    repeated: list[tuple[str, int]] = field(default_factory=list)
    scalars: yaml.SafeLoader = field(default_factory=lambda: yaml.SafeLoader(""))

    def value(self, steps: Steps, node: yaml.Node) -> Any:
        line = line_of(node)
        self.lines.setdefault(steps, line)
        if len(steps) > DEEPEST:  # an alias of what it stands in
            raise YamlError("is nested too deeply", line)
        if isinstance(node, yaml.MappingNode):
            return dict(self._item(steps, key, value) for key, value in node.value)
        if isinstance(node, yaml.SequenceNode):
            return [self.value((*steps, i), each) for i, each in enumerate(node.value)]
        try:
            return self.scalars.construct_object(node)
        except (ValueError, KeyError, AttributeError) as error:  # 2026-02-30, !!bool x
            message = f"is no YAML: {node.value[:40]!r} cannot be read: {error}"
            raise YamlError(message, line) from error

    def _item(self, steps: Steps, key: yaml.Node, value: yaml.Node) -> tuple[str, Any]:
        line = line_of(key)
        if not isinstance(key, yaml.ScalarNode):
            raise YamlError("is no YAML: a list or a mapping is no key", line)
        name = str(key.value)
        if self.strict and key.tag != _TEXT:
            raise YamlError(f"{name!r} is no text as a key; write it in quotes", line)
        path = (*steps, name)
        if path in self.lines:
            self.repeated.append((name, line))
        self.lines[path] = line
        return name, self.value(path, value)
