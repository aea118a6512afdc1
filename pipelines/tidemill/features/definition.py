"""A pipeline as its file declares it: a source, a clock, triggers, and the views to keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from tidemill.errors import DefinitionError, UsageError
from tidemill.features.names import Duration, Identifier
from tidemill.features.ring import Shape
from tidemill.features.suggest import did_you_mean
from tidemill.features.view import FeatureView
from tidemill.features.windows import duration
from tidemill.sources.made import ENGAGEMENT, KINDS

SHIPPED = Path(__file__).parent.parent / "definitions"
LARGEST_FILE = 256 * 1024
DEEPEST = 50  # lists and mappings inside one another
LEAST_RETENTION = timedelta(days=7)  # what Delta holds to be safe
Mode = Literal["recompute", "incremental", "auto"]
ENGINES = ("buckets", "stateful")


def _is_engine(text: str) -> str:
    if text not in ENGINES:
        raise ValueError(f"unknown engine {text!r}{did_you_mean(text, ENGINES)}")
    return text


def _is_kind(text: str) -> str:
    if text not in KINDS:
        raise ValueError(f"unknown events {text!r}{did_you_mean(text, KINDS)}")
    return text


Engine = Annotated[str, AfterValidator(_is_engine), WithJsonSchema({"enum": [*ENGINES]})]
Events = Annotated[str, AfterValidator(_is_kind), WithJsonSchema({"enum": [*KINDS]})]


class _Declared(BaseModel):
    """Words of a file: frozen, and unknown ones are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class FilesSource(_Declared):
    """New files in a folder, JSON lines or Parquet."""

    kind: Literal["files"]
    input: str | None = None


class GeneratorSource(_Declared):
    """Made-up events of one kind: the same seed and start give the same events."""

    kind: Literal["generator"]
    events: Events = ENGAGEMENT
    seed: int = 7
    rate: int = Field(default=500, ge=1, le=1_000_000)
    minutes: int = Field(default=1560, ge=1)
    minutes_per_batch: int = Field(default=130, ge=1)
    start: AwareDatetime | None = None


class Triggers(_Declared):
    """How often each query looks for new rows; `state` is the stateful engine's."""

    land: Duration = "30s"
    clean: Duration = "30s"
    feature: Duration = "60s"
    state: Duration = "30s"


class Maintenance(_Declared):
    """Upkeep between the batches of a continuous run: how often, and how long files that the newest
    version of a table no longer names are kept, for readers of its history."""

    every: Duration = "1h"
    retention: Duration = "7d"

    @model_validator(mode="after")
    def _check(self) -> Maintenance:
        if duration(self.retention) < LEAST_RETENTION:
            raise ValueError(f"retention {self.retention} is too short: at least 7d")
        return self


class PipelineDefinition(_Declared):
    """One pipeline: its tables are `<pipeline>_bronze`, `<pipeline>_events`, `<view>_features` ...

    A batch reads at most `max_files_per_trigger` files; of a generator at most
    `max_offsets_per_trigger` records, in whole minutes, at least one.
    """

    pipeline: Identifier
    source: Annotated[FilesSource | GeneratorSource, Field(discriminator="kind")]
    clock: Literal["event", "wall"] = "event"
    triggers: Triggers = Triggers()
    engine: Engine = "buckets"
    refresh: Mode = "auto"
    max_files_per_trigger: int = Field(default=1000, ge=1)
    max_offsets_per_trigger: int | None = Field(default=None, ge=1)
    history: Duration = "400d"
    maintenance: Maintenance | None = Maintenance()
    views: tuple[FeatureView, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> PipelineDefinition:
        first = self.views[0]
        names = [view.name for view in self.views]
        if len(set(names)) < len(names):
            raise ValueError(f"a view is declared twice: {', '.join(names)}")
        for view in self.views:
            if (view.event_time, view.event_schema) != (first.event_time, first.event_schema):
                raise ValueError(
                    f"views {first.name} and {view.name} read the same events, but declare another "
                    "event_time or schema"
                )
            if view.horizon > self.kept:
                longest = view.windows[0].text
                raise ValueError(f"history {self.history} is shorter than {longest}")
            if view.source not in (None, self.pipeline):
                raise ValueError(f"view {view.name} reads {view.source}, not {self.pipeline}")
        if self.engine == "stateful":
            self._check_stateful()
        return self

    def _check_stateful(self) -> None:
        if self.refresh != "auto":
            raise ValueError(
                f"refresh: {self.refresh} cannot be done from state; leave it out, or take "
                "engine: buckets"
            )
        for view in self.views:
            Shape.of(view)

    @property
    def events(self) -> FeatureView:
        """The view whose schema and event time all views share."""
        return self.views[0]

    @property
    def kept(self) -> timedelta:
        """How old an event may be when it arrives, and how long its buckets are kept."""
        return duration(self.history)

    def kept_of(self, view: FeatureView) -> timedelta:
        """Yield how long the buckets of a view are kept."""
        return min(self.kept, view.kept)

    def scales(self) -> dict[str, int]:
        """Yield, for each double that a view adds up, the most digits kept after the point."""
        each = [view.scales() for view in self.views]
        names = dict.fromkeys(name for found in each for name in found)
        return {name: max(found.get(name, 0) for found in each) for name in names}

    def known_values(self) -> dict[str, tuple[str, ...]]:
        """Yield the values an event may have, of the columns that every view splits by."""
        each = [view.known_values() for view in self.views]
        shared = [column for column in each[0] if all(column in known for known in each)]
        return {
            column: tuple(dict.fromkeys(value for known in each for value in known[column]))
            for column in shared
        }

    def overridden(self, said: Mapping[str, Any]) -> PipelineDefinition:
        """Yield the definition with other values for some of its words, checked as a file's are."""
        try:
            return PipelineDefinition.model_validate({**dict(self), **said})
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(step) for step in first["loc"])
            message = first["msg"].removeprefix("Value error, ")
            if first["type"] != "value_error":
                message = f"{message}, found {first['input']!r}"
            raise UsageError(message, where=place) from error

    def view(self, name: str) -> FeatureView:
        """Yield the view called `name`."""
        for view in self.views:
            if view.name == name:
                return view
        hint = did_you_mean(name, [view.name for view in self.views])
        raise DefinitionError(f"unknown view {name!r}{hint}")


def shipped() -> list[str]:
    """Yield the names of the pipelines that come with Tidemill."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def declaring(view: str, pipeline: str | None = None) -> PipelineDefinition:
    """Yield the pipeline that declares the view called `view`: the one given, else a shipped
    one."""
    if pipeline:
        definition = load(pipeline)
        definition.view(view)
        return definition
    known: dict[str, PipelineDefinition] = {}
    for definition in map(load, shipped()):
        known = {**{one.name: definition for one in definition.views}, **known}
    if view not in known:
        hint = did_you_mean(view, known)
        raise DefinitionError(
            f"unknown view {view!r}{hint}", expected="a shipped view, or --pipeline FILE"
        )
    return known[view]


def load(pipeline: str) -> PipelineDefinition:
    """Yield the pipeline called `pipeline`: a shipped name, or the path of a YAML file."""
    if pipeline in shipped():
        return read(SHIPPED / f"{pipeline}.yaml")
    path = Path(pipeline)
    if path.suffix not in {".yaml", ".yml"}:
        raise DefinitionError(
            f"unknown pipeline {pipeline!r}{did_you_mean(pipeline, shipped())}",
            expected="a shipped name or the path of a .yaml file",
        )
    if not path.is_file():
        raise DefinitionError("there is no such file", where=str(path), expected="a pipeline file")
    return read(path)


def read(path: Path) -> PipelineDefinition:
    """Yield the pipeline that the file at `path` declares; errors name file, line and field."""
    tree = _compose(path)
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        return PipelineDefinition.model_validate(data)
    except ValidationError as error:
        raise _explained(path, tree, error) from error
    except (yaml.YAMLError, ValueError) as error:
        raise DefinitionError(f"no YAML: {error}", where=str(path)) from error


def _compose(path: Path) -> yaml.Node:
    """Yield the file as nodes with lines; refuse what YAML would hide: twice-named words, aliases,
    tags."""
    try:
        text = path.read_bytes()[: LARGEST_FILE + 1].decode("utf-8")
        if len(text) > LARGEST_FILE:
            raise DefinitionError("is too large for a pipeline file", where=str(path))
        _refuse_what_hides(path, yaml.parse(text, Loader=yaml.SafeLoader))
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"cannot be read: {error}", where=str(path)) from error
    except yaml.YAMLError as error:
        raise DefinitionError(
            f"no YAML: {' '.join(str(error).split())}", where=str(path)
        ) from error
    if not isinstance(tree, yaml.MappingNode):
        raise DefinitionError("holds no pipeline", where=str(path), expected="pipeline: NAME ...")
    for twice in _twice(tree):
        raise DefinitionError(f"{twice.value!r} stands twice", where=f"{path}:{_line(twice)}")
    return tree


def _refuse_what_hides(path: Path, events: Iterable[yaml.Event]) -> None:
    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        tag, where = getattr(event, "tag", None), f"{path}:{_line(event)}"
        if isinstance(event, yaml.AliasEvent):
            raise DefinitionError("YAML aliases (*name) are not taken", where=where)
        if tag:
            raise DefinitionError(f"YAML tags ({tag}) are not taken", where=where)
        if depth > DEEPEST:
            raise DefinitionError("is nested too deeply", where=where)


def _line(part: yaml.Node | yaml.Event) -> int:
    """Yield the line on which a part of the file begins, from 1."""
    return part.start_mark.line + 1 if part.start_mark else 0


def _twice(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    children = node.value if isinstance(node, yaml.CollectionNode) else []
    seen: set[str] = set()
    for child in children:
        key, value = child if isinstance(child, tuple) else (None, child)
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                yield key
            seen.add(key.value)
        yield from _twice(value)


def _path(error: Any) -> tuple[str | int, ...]:
    """Yield the steps from where pydantic saw an error to what is wrong."""
    return getattr(error.get("ctx", {}).get("error"), "path", ())


@dataclass(frozen=True)
class _Place:
    node: yaml.Node
    field: str


def _explained(path: Path, tree: yaml.Node, error: ValidationError) -> DefinitionError:
    """Yield the first of pydantic's complaints with its line and, for an unknown word, the
    nearest."""
    first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    place = _find(tree, (*first["loc"], *_path(first)))
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        message = f"unknown word{_nearest(first['loc'])}"
    elif first["type"] not in {"value_error", "missing"}:
        message = f"{message}, found {first['input']!r}"
    line = _line(place.node)
    where = f"{path}:{line}: {place.field}" if place.field else f"{path}:{line}"
    return DefinitionError(message, where=where)


def _find(tree: yaml.Node, loc: tuple[int | str, ...]) -> _Place:
    """Yield the deepest node that `loc` leads to; steps that are no keys (union tags) are passed
    over."""
    node, field = tree, ""
    for step in loc:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            field = f"{field}[{step}]"
        elif isinstance(node, yaml.MappingNode):
            found = [pair for pair in node.value if pair[0].value == step]
            field = (
                f"{field}.{step}" if field and (found or step is loc[-1]) else field or str(step)
            )
            if found:
                key, value = found[0]
                node = value if isinstance(value, yaml.CollectionNode) else key
    return _Place(node, field)


_WORDS: dict[str, type[BaseModel]] = {
    "source.files": FilesSource,
    "source.generator": GeneratorSource,
    "triggers": Triggers,
    "maintenance": Maintenance,
    "views": FeatureView,
}


def _nearest(loc: tuple[int | str, ...]) -> str:
    above = ".".join(str(step) for step in loc[:-1] if isinstance(step, str))
    model: Any = _WORDS.get(above, PipelineDefinition)
    names = [info.alias or name for name, info in model.model_fields.items()]
    return f" {loc[-1]!r}{did_you_mean(str(loc[-1]), names)}"
