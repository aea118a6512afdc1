"""Fields, types and words: `bundle.schema.json` for databricks.yml, databricks-bundles for
resources.

A resource is parsed by the package's own strict parser, which names no line; so the same
dataclasses are also read as a JSON Schema, whose errors do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from tidemill.config.yaml_values import Steps
from tidemill.databricks.bundle.document import Document
from tidemill.databricks.bundle.issue import Finding
from tidemill.databricks.bundle.project import Bundle, Resource, mapping
from tidemill.databricks.bundle.references import Target
from tidemill.errors import SetupError
from tidemill.features.suggestions import did_you_mean

KINDS = {
    "alerts": "Alert",
    "dashboards": "Dashboard",
    "jobs": "Job",
    "schemas": "Schema",
    "volumes": "Volume",
}
IS_REFERENCE = {"type": "string", "pattern": r"^\$\{[^}]+\}$"}
NEEDED = ("databricks-bundles", "jsonschema")


def require() -> None:
    """Raise SetupError unless the packages that know bundles are there; they are for development
    only."""
    try:
        import_module("databricks.bundles.jobs")
        import_module("jsonschema")
    except ImportError as error:
        how = f"pip install {' '.join(NEEDED)}"
        message = f"is missing ({error.name})"
        raise SetupError(message, where=" or ".join(NEEDED), expected=f"`{how}`") from error


def check(bundle: Bundle) -> Iterator[Finding]:
    """Yield unknown and missing fields, wrong types and unknown words."""
    yield from _main(bundle.main)
    for document in bundle.included:
        value = document.value if isinstance(document.value, Mapping) else {}
        for name in value:
            if name != "resources":
                yield document.finding((name,), f"unknown field {name!r}", "resources")
        if not mapping(value, "resources"):
            yield document.finding((), "declares no resource", "resources")
    keys: set[str] = set()
    for resource in bundle.resources:
        if resource.key in keys:  # one key names one resource, whatever their kinds
            yield resource.finding((), f"a resource is called {resource.key!r} already")
        keys.add(resource.key)
        if resource.kind in KINDS:
            for name in bundle.targets:
                yield from _resource(resource, Target(bundle, name))
        else:
            message = f"unknown kind of resource {resource.kind!r}"
            steps = ("resources", resource.kind)
            yield resource.document.finding(steps, message + did_you_mean(resource.kind, KINDS))


def _resource(resource: Resource, target: Target) -> Iterator[Finding]:
    """Yield what is wrong with a resource as a target has it."""
    value = target.resolved(resource.value)
    wrong = False
    for error in _validator(resource.kind).iter_errors(value):
        document, steps = target.place(resource, tuple(error.absolute_path))
        yield from _told(document, steps, error)
        wrong = True
    if wrong:
        return
    try:
        _class(resource.kind).from_dict(value)
    except (ValueError, TypeError, AssertionError) as error:
        yield resource.finding((), f"is refused by databricks-bundles: {error}")


def _main(document: Document) -> Iterator[Finding]:
    text = Path(__file__).with_name("bundle.schema.json").read_text(encoding="utf-8")
    for error in _schema(json.loads(text)).iter_errors(document.value):
        yield from _told(document, tuple(error.absolute_path), error)


def _told(document: Document, steps: Steps, error: Any) -> Iterator[Finding]:
    """Yield a schema's error in words of the field."""
    name = f"{steps[-1]!r}" if steps else "the file"
    known = list(error.schema.get("properties", {}))
    match error.validator:
        case "additionalProperties":
            for extra in sorted(set(error.instance) - set(known)):
                message = f"unknown field {extra!r}{did_you_mean(extra, known)}"
                yield document.finding((*steps, extra), message)
        case "required":
            missing = [field for field in error.validator_value if field not in error.instance]
            yield document.finding(steps, f"{name} has no {missing[0]!r}")
        case "enum":
            words = ", ".join(map(str, error.validator_value))
            yield document.finding(steps, f"{name} cannot be {error.instance!r}", words)
        case "type":
            yield document.finding(
                steps, f"{name} cannot be {error.instance!r}", str(error.validator_value)
            )
        case _:
            yield document.finding(steps, f"{name}: {error.message}")


def _schema(schema: Mapping[str, Any]) -> Any:
    return import_module("jsonschema").Draft202012Validator(schema)


def _class(kind: str) -> Any:
    return getattr(import_module(f"databricks.bundles.{kind}"), KINDS[kind])


@cache
def _validator(kind: str) -> Any:
    """Return the schema of a kind of resource, made of databricks-bundles' dataclasses."""
    definitions: dict[str, Any] = {}
    top = _of(_class(kind), definitions)
    return _schema({**top, "$defs": definitions})


def _of(type_: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type; a reference may stand wherever the dataclass allows one."""
    origin, arguments = get_origin(type_), get_args(type_)
    if origin in (Union, UnionType):
        kept = [a for a in arguments if a is not NoneType and not _is_variable(a)]
        inner = _of(kept[0], definitions)
        if any(_is_variable(a) for a in arguments):
            return {"if": IS_REFERENCE, "else": inner}
        return inner
    if origin is list:
        return {"type": "array", "items": _of(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    if is_dataclass(type_):
        return _of_dataclass(type_, definitions)
    if isinstance(type_, type) and issubclass(type_, Enum):
        return {"enum": [member.value for member in type_]}
    words = {str: "string", int: "integer", float: "number", bool: "boolean"}
    return {"type": words[type_]} if type_ in words else {}


def _of_dataclass(type_: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    name = f"{type_.__module__}.{type_.__qualname__}"
    if name not in definitions:
        definitions[name] = {}
        hints = get_type_hints(type_)
        definitions[name] = {
            "type": "object",
            "additionalProperties": False,
            "properties": {f.name: _of(hints[f.name], definitions) for f in fields(type_)},
            "required": [
                f.name
                for f in fields(type_)
                if f.default is MISSING and f.default_factory is MISSING
            ],
        }
    return {"$ref": f"#/$defs/{name}"}


def _is_variable(type_: Any) -> bool:
    return getattr(get_origin(type_), "__name__", "") == "Variable"
