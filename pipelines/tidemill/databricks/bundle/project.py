"""The bundle as one thing: its main file, the files it includes, its resources and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tidemill.config.yaml_values import Steps
from tidemill.databricks.bundle.document import Document
from tidemill.databricks.bundle.document import read as read_document
from tidemill.databricks.bundle.issue import Finding
from tidemill.errors import UsageError

MAIN = "databricks.yml"


@dataclass(frozen=True)
class Resource:
    """A resource as declared: its kind (`jobs`), its key, and where it stands."""

    kind: str
    key: str
    value: Any
    document: Document

    @property
    def steps(self) -> Steps:
        """The steps to it in its document."""
        return ("resources", self.kind, self.key)

    def finding(self, steps: Steps, message: str, expected: str | None = None) -> Finding:
        """Return what is wrong with a part of it."""
        return self.document.finding((*self.steps, *steps), message, expected)

    def path(self, relative: str) -> str:
        """Return a path that it names, relative to the bundle's folder as the file's are."""
        return (Path(self.document.file).parent / relative).as_posix()


@dataclass(frozen=True)
class Bundle:
    """What stands in the bundle's files."""

    folder: Path
    main: Document
    included: tuple[Document, ...]

    @property
    def documents(self) -> tuple[Document, ...]:
        """Every YAML file of the bundle."""
        return (self.main, *self.included)

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Every resource, in the order of the files."""
        return tuple(
            Resource(kind, key, value, document)
            for document in self.documents
            for kind, entries in mapping(document.value, "resources").items()
            for key, value in mapping(entries).items()
        )

    def of(self, kind: str) -> Iterator[Resource]:
        """Return the resources of a kind, those that are no mapping left out."""
        return (r for r in self.resources if r.kind == kind and isinstance(r.value, Mapping))

    @property
    def variables(self) -> Mapping[str, Any]:
        """The declared variables."""
        return mapping(self.main.value, "variables")

    @property
    def targets(self) -> Mapping[str, Any]:
        """The declared targets."""
        return mapping(self.main.value, "targets")

    @property
    def default_target(self) -> str:
        """The target that is meant when none is named."""
        marked = [name for name, target in self.targets.items() if mapping(target).get("default")]
        return next(iter([*marked, *self.targets]), "")


def mapping(value: Any, *steps: str) -> Mapping[str, Any]:
    """Return the mapping that the steps lead to, an empty one where there is none."""
    for step in steps:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def items(value: Any, step: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the mappings in the list under `step`, each with its number."""
    content = value.get(step) if isinstance(value, Mapping) else None
    listed = content if isinstance(content, list) else []
    return [(number, each) for number, each in enumerate(listed) if isinstance(each, Mapping)]


def read(folder: Path) -> Bundle:
    """Return the bundle of a folder; UsageError when there is none."""
    if not (folder / MAIN).is_file():
        raise UsageError(
            f"there is no {MAIN}", where=str(folder), expected="the folder of a bundle"
        )
    main = read_document(folder, MAIN)
    patterns = main.value.get("include") if isinstance(main.value, Mapping) else None
    files = {
        path.relative_to(folder).as_posix()
        for pattern in (patterns if isinstance(patterns, list) else [])
        for path in folder.glob(str(pattern))
    }
    return Bundle(folder, main, tuple(read_document(folder, file) for file in sorted(files)))
