"""A file of declared words: YAML read strictly, and each mistake told with its line and field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from tidemill.config.yaml_values import YamlError, line_of, parse
from tidemill.errors import DefinitionError
from tidemill.features.suggestions import did_you_mean
from tidemill.sources import registry

LARGEST_FILE = 256 * 1024
Loc = tuple[int | str, ...]
Words = Mapping[str, type[BaseModel]]  # the model of the words below a path; "" is the file's own


class Declared(BaseModel):
    """Words of a file: frozen, and unknown ones are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


def read(path: Path, what: str, begins: str) -> tuple[dict[str, Any], yaml.Node]:
    """Return the words of the file at `path`, and its nodes, by which mistakes are placed.

    DefinitionError with the line for what YAML would hide: a word that stands twice, aliases, tags.
    """
    try:
        text = path.read_bytes()[: LARGEST_FILE + 1].decode("utf-8")
        if len(text) > LARGEST_FILE:
            raise DefinitionError(f"is too large for a {what} file", where=str(path))
        parsed = parse(text, strict=True)
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"cannot be read: {error}", where=str(path)) from error
    except YamlError as error:
        raise DefinitionError(error.message, where=f"{path}:{error.line}") from error
    if not isinstance(parsed.node, yaml.MappingNode):
        raise DefinitionError(f"holds no {what}", where=str(path), expected=begins)
    for name, line in parsed.repeated:
        raise DefinitionError(f"{name!r} stands twice", where=f"{path}:{line}")
    return parsed.value, parsed.node


def _path(error: Any) -> tuple[str | int, ...]:
    """Return the steps from where pydantic saw an error to what is wrong."""
    return getattr(error.get("ctx", {}).get("error"), "path", ())


@dataclass(frozen=True)
class _Place:
    node: yaml.Node
    field: str


def explained(path: Path, tree: yaml.Node, error: ValidationError, words: Words) -> DefinitionError:
    """Return the first of pydantic's complaints with its line and, for an unknown word, the
    nearest."""
    first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    loc = (*first["loc"], *_path(first))
    if first["type"] == "extra_forbidden":
        message = f"unknown word{_nearest(first['loc'], words)}"
    else:
        message = sentence(first)
    return misplaced(path, tree, loc, message)


def sentence(error: Mapping[str, Any]) -> str:
    """Return one of pydantic's complaints as a sentence, with what it found; of a kind of source
    that nobody knows, with those that are known."""
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "union_tag_invalid":
        tag, kinds = error["ctx"]["tag"], re.findall(r"'(\w+)'", error["ctx"]["expected_tags"])
        broken = registry.broken().get(tag)
        return f"unknown kind {tag!r}{f': {broken}' if broken else did_you_mean(tag, kinds)}"
    if error["type"] in {"value_error", "missing"}:
        return message
    return f"{message}, found {error['input']!r}"


def misplaced(path: Path, tree: yaml.Node, loc: Loc, message: str) -> DefinitionError:
    """Return the error of what `loc` leads to, with its line."""
    place = _find(tree, loc)
    line = line_of(place.node)
    where = f"{path}:{line}: {place.field}" if place.field else f"{path}:{line}"
    return DefinitionError(message, where=where)


def _find(tree: yaml.Node, loc: Loc) -> _Place:
    """Return the deepest node that `loc` leads to; steps that are no keys (union tags) are passed
    over."""
    node, field = tree, ""
    for step in loc:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            field = f"{field}[{step}]"
        elif isinstance(node, yaml.MappingNode):
            pairs = [pair for pair in node.value if pair[0].value == step]
            field = (
                f"{field}.{step}" if field and (pairs or step is loc[-1]) else field or str(step)
            )
            if pairs:
                key, value = pairs[0]
                node = value if isinstance(value, yaml.CollectionNode) else key
    return _Place(node, field)


def _nearest(loc: Loc, words: Words) -> str:
    above = [str(step) for step in loc[:-1] if isinstance(step, str)]
    near = (".".join(above[:1]) + ".*", ".".join(above))
    model: Any = next((words[path] for path in reversed(near) if path in words), words[""])
    names = [info.alias or name for name, info in model.model_fields.items()]
    return f" {loc[-1]!r}{did_you_mean(str(loc[-1]), names)}"
