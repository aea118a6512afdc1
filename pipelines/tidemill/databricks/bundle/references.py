"""References, `${...}`: what they may name, and what they stand for in a target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemill.config.yaml_values import Steps
from tidemill.databricks.bundle.document import Document
from tidemill.databricks.bundle.issue import Finding
from tidemill.databricks.bundle.project import Bundle, Resource, mapping
from tidemill.features.suggestions import did_you_mean

REFERENCE = re.compile(r"(?<!\$)\$\{([^}]*)\}")
KNOWN = {
    "bundle": ("name", "target", "uuid"),
    "workspace": ("host", "root_path", "file_path", "artifact_path", "state_path", "current_user"),
}


def check(bundle: Bundle) -> Iterator[Finding]:
    """Yield references that lead nowhere, and variables that nothing names."""
    used: set[str] = set()
    for document in bundle.documents:
        for steps, text in document.texts():
            for path in REFERENCE.findall(text):
                head, _, rest = path.partition(".")
                used |= {re.split(r"[.\[]", rest)[0]} if head == "var" else set()
                if wrong := _wrong(bundle, path):
                    yield document.finding(steps, f"${{{path}}}: {wrong}")
    for name in bundle.variables:
        if name not in used:
            yield bundle.main.finding(("variables", name), f"variable {name!r} is not used")
    for target, declared in bundle.targets.items():
        for name in mapping(declared, "variables"):
            if name not in bundle.variables:
                message = f"variable {name!r} is not declared{did_you_mean(name, bundle.variables)}"
                yield bundle.main.finding(("targets", target, "variables", name), message)


def _wrong(bundle: Bundle, path: str) -> str | None:
    """Return what is wrong with a reference, None when it leads somewhere."""
    head, *rest = path.split(".")
    name = re.split(r"\[", rest[0])[0] if rest else ""
    if head == "var":
        known = bundle.variables
        return None if name in known else f"variable is not declared{did_you_mean(name, known)}"
    if head == "resources":
        resources = [f"{r.kind}.{r.key}" for r in bundle.resources]
        said = ".".join(rest[:2])
        return None if said in resources else f"no such resource{did_you_mean(said, resources)}"
    if head in KNOWN:
        return None if name in KNOWN[head] else f"unknown name{did_you_mean(name, KNOWN[head])}"
    return f"unknown reference{did_you_mean(head, ('var', 'resources', *KNOWN))}"


@dataclass(frozen=True)
class Target:
    """A target's eyes: values with their references resolved.

    `given` are variables given beside the files, `known` other references' values. What only a
    deployment knows (a variable without a default, a look-up, the user) stays as it is written.
    """

    bundle: Bundle
    name: str
    given: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)

    def resolved(self, value: Any, seen: frozenset[str] = frozenset()) -> Any:
        """Return the value with every reference in it resolved."""
        if isinstance(value, Mapping):
            return {key: self.resolved(part, seen) for key, part in value.items()}
        if isinstance(value, list):
            return [self.resolved(part, seen) for part in value]
        if not isinstance(value, str):
            return value
        whole = REFERENCE.fullmatch(value)
        if whole:
            return self._named(whole[1], seen)
        return REFERENCE.sub(lambda match: str(self._named(match[1], seen)), value)

    def _named(self, path: str, seen: frozenset[str]) -> Any:
        written = f"${{{path}}}"
        value = None if path in seen else self._value(path)
        return written if value is None else self.resolved(value, seen | {path})

    def _value(self, path: str) -> Any:
        head, _, rest = path.partition(".")
        if path in self.known:
            return self.known[path]
        if head == "var":
            return self.variable(rest)
        if path == "bundle.target":
            return self.name
        if head == "bundle":
            return mapping(self.bundle.main.value, "bundle").get(rest)
        if head == "resources":
            kind, key, *fields = [*rest.split("."), ""]
            values = [r.value for r in self.bundle.of(kind) if r.key == key]
            return values[0].get(fields[0]) if values else None
        return None

    def variable(self, name: str) -> Any:
        """Return a variable's value in this target, unresolved; None when it is given at
        deployment."""
        if name in self.given:
            return self.given[name]
        here = mapping(self.bundle.targets.get(self.name), "variables")
        if name in here:
            return here[name]
        declared = self.bundle.variables.get(name)
        return declared.get("default") if isinstance(declared, Mapping) else declared

    def declares(self, name: str) -> Steps:
        """Return the steps to the value of a variable, in the main file."""
        here: Steps = ("targets", self.name, "variables", name)
        return here if here in self.bundle.main.lines else ("variables", name, "default")

    def place(self, resource: Resource, steps: Steps) -> tuple[Document, Steps]:
        """Return where a part of a resolved resource is written: in its own file, or in the value
        of the variable that stands there."""
        value = resource.value
        for number, step in enumerate(steps):
            if isinstance(value, str):
                return self._behind(value, resource, steps[:number], steps[number:])
            value = value[step] if _holds(value, step) else None
        return self._behind(value, resource, steps, ())

    def _behind(
        self, value: Any, resource: Resource, steps: Steps, rest: Steps
    ) -> tuple[Document, Steps]:
        named = REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if named and named[1].startswith("var."):
            return self.bundle.main, (*self.declares(named[1].removeprefix("var.")), *rest)
        return resource.document, (*resource.steps, *steps)


def _holds(value: Any, step: str | int) -> bool:
    if isinstance(value, Mapping):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)
