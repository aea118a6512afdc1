"""A pipeline as its file declares it: a source, a clock, triggers, and the views to keep."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)

from tidemill.config import alert_rule, dataflow, publishing, quality_file, yaml_loader
from tidemill.config import dimension as dimension_words
from tidemill.config.alert_rule import AlertRule
from tidemill.config.alert_sinks import AlertSinks, AlertTopic, Webhook
from tidemill.config.dataflow import QUERIES, Query
from tidemill.config.dimension import Dimension, Enrichment
from tidemill.config.publishing import Publishing
from tidemill.config.quality_file import Rules
from tidemill.config.source_words import SourceOfKind
from tidemill.config.stream_operators import stream as stream_words
from tidemill.config.stream_operators.distinct import Distinct
from tidemill.config.stream_operators.join import Join, Side
from tidemill.config.stream_operators.process import Process
from tidemill.config.stream_operators.sessions import Sessions
from tidemill.config.stream_operators.span import Span
from tidemill.config.stream_operators.stream import Stream
from tidemill.config.stream_operators.window_totals import Totals
from tidemill.config.yaml_loader import Declared, Words, explained
from tidemill.errors import DefinitionError, UsageError
from tidemill.features.checks import Misdeclared, key_of_answers
from tidemill.features.ring_buffer import Shape
from tidemill.features.suggestions import did_you_mean
from tidemill.features.types import OF_ANSWERS, Duration, Identifier, Size
from tidemill.features.view import FeatureView
from tidemill.features.windows import duration
from tidemill.sources.kafka.words import KafkaSink
from tidemill.sources.registry import kind_of, kinds

SHIPPED = Path(__file__).parent / "shipped"
LEAST_RETENTION = timedelta(days=7)  # what Delta holds to be safe
_TOPIC = ("sink", "kafka", "topic")
LEAST_LOG = timedelta(hours=1)  # a reader may have begun with an older version
Mode = Literal["recompute", "incremental", "auto"]
ServedHistory = Literal["maintenance", "refresh"]
ENGINES = ("buckets", "stateful")


def _is_engine(text: str) -> str:
    if text not in ENGINES:
        raise ValueError(f"unknown engine {text!r}{did_you_mean(text, ENGINES)}")
    return text


Engine = Annotated[str, AfterValidator(_is_engine), WithJsonSchema({"enum": [*ENGINES]})]
Quality = Annotated[
    Rules,
    WithJsonSchema(
        {
            "type": "string",
            "description": "the file of its rules, NAME.quality.yml",
            "pattern": "ya?ml$",
        }
    ),
]


if TYPE_CHECKING:
    Triggers = Declared
else:
    Triggers = create_model(
        "Triggers",
        __base__=Declared,
        __doc__="How often each query looks for new rows; `state` is the stateful engine's.",
        **{query.name: (Duration, query.trigger) for query in QUERIES},
    )


class Maintenance(Declared):
    """Maintenance between the batches of a continuous run: how often, and how long files that the
    newest version of a table no longer names are kept, for readers of its history. Of a folder
    lake's log `log` is kept, and what a query or a ledger needs of it; with null Delta cleans it by
    itself.
    """

    every: Duration = "1h"
    retention: Duration = "7d"
    log: Duration | None = "6h"

    @model_validator(mode="after")
    def _check(self) -> Maintenance:
        if duration(self.retention) < LEAST_RETENTION:
            raise ValueError(f"retention {self.retention} is too short: at least 7d")
        if self.log and duration(self.log) < LEAST_LOG:
            raise ValueError(f"log {self.log} is too short: at least 1h")
        return self


class Sink(Declared):
    """Where what changes in gold is sent, beside its tables."""

    kafka: KafkaSink


class PipelineDefinition(Declared):
    """One pipeline: its tables are `<pipeline>_bronze`, `<pipeline>_events`, `<view>_features` ...

    A batch of `land` reads at most `max_files_per_trigger` files; of a generator at most
    `max_offsets_per_trigger` records, in whole minutes, at least one. A batch of `clean` or
    `feature` reads at most so many files of its table, and ends with the file that brings it to
    `max_bytes_per_trigger`: it reads one file at least, and files whole. A file's `quality` names
    the file of its rules; by default `<its name>.quality.yml` beside it, where there is one.
    `served_history` keeps what gold answered, beyond the `retention` of its files: a
    table that maintenance feeds, or the run after its refreshes.
    Without a `clock` it goes by that of its source's kind. `dimensions` are kept by the changes
    that sources of their own bring, and `enrich` says what events take of them. `streams` are rows
    that follow the events in tables of their own: joins, distinct events, sessions, totals. With
    `publish` an online store follows gold; a `sink` is sent what changes in it. `alerts` are rules
    over the features of a key: when one becomes true, and when it ends, stands in
    `<pipeline>_alerts`, from where `alert_sinks` get it.
    """

    model_config = ConfigDict(defer_build=True)  # the kinds of sources are not known yet

    pipeline: Identifier
    source: SourceOfKind
    clock: Literal["event", "wall"] = "event"
    triggers: Triggers = Triggers()
    engine: Engine = "buckets"
    refresh: Mode = "auto"
    max_files_per_trigger: int = Field(default=1000, ge=1)
    max_bytes_per_trigger: Size = "128m"
    max_offsets_per_trigger: int | None = Field(default=None, ge=1)
    history: Duration = "400d"
    maintenance: Maintenance | None = Maintenance()
    publish: Publishing | None = None
    served_history: ServedHistory | None = None
    quality: Quality = Field(default_factory=Rules)
    sink: Sink | None = None
    alerts: tuple[AlertRule, ...] = ()
    alert_sinks: AlertSinks | None = None
    dimensions: tuple[Dimension, ...] = ()
    enrich: tuple[Enrichment, ...] = ()
    streams: tuple[Stream, ...] = ()
    views: tuple[FeatureView, ...] = Field(min_length=1)
    _file: str = PrivateAttr("")

    @model_validator(mode="after")
    def _go_by_the_sources_clock(self) -> PipelineDefinition:
        if "clock" not in self.model_fields_set:
            object.__setattr__(self, "clock", kind_of(self.source).clock)
        return self

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
            self._check_history(view)
            if self.sink and len(names) > 1 and "{view}" not in self.sink.kafka.topic:
                raise Misdeclared("a topic of several views has {view} in its name", *_TOPIC)
            if view.source not in (None, self.pipeline):
                raise ValueError(f"view {view.name} reads {view.source}, not {self.pipeline}")
        dimension_words.check(self.dimensions, self.enrich, self.pipeline, self.views)
        dimensions = [one.name for one in self.dimensions]
        streams = stream_words.checked(self.streams, self.views, dimensions)
        object.__setattr__(self, "streams", streams)
        publishing.check(self.publish, self.views)
        object.__setattr__(self, "alerts", alert_rule.checked(self.alerts, self.views))
        for view in self.views:
            self._check_answers(view)
        quality_file.check(self.quality, first)
        for name in self.quality.fields:
            if name in self.enriched:
                raise ValueError(f"{name} comes of a dimension: no rule of a record can be of it")
        if self.engine == "stateful":
            self._check_stateful()
        return self

    def _check_history(self, view: FeatureView) -> None:
        if view.apart > self.kept:
            longest = max(view.windows, key=lambda window: window.apart)
            features = (n for n, f in enumerate(view.features) if longest in f.windows)
            path = ("views", self.views.index(view), "features", next(features))
            said = "history" in self.model_fields_set
            message = f"history {self.history} is shorter than {longest.text}"
            raise Misdeclared(message, *(() if said else path))

    def _check_answers(self, view: FeatureView) -> None:
        words = "served_history" if self.served_history else "alerts"
        key = key_of_answers(view)
        if key and (self.served_history or self.alerts_of(view)):
            selected = f"{{{view.name}_{key}: {{{view.types[key].lower()}: {key}}}}}"
            raise Misdeclared(
                f"with {words} no key is called {', '.join(sorted(OF_ANSWERS))}: give it another "
                f"name, such as `select: {selected}`",
                "views",
                self.views.index(view),
                "keys",
            )

    def _check_stateful(self) -> None:
        if self.refresh != "auto":
            raise ValueError(
                f"refresh: {self.refresh} cannot be done from state; leave it out, or take "
                "engine: buckets"
            )
        for view in self.views:
            Shape.of(view)

    def __eq__(self, other: object) -> bool:
        """Return whether all words are the same, in whatever file they stand."""
        return isinstance(other, PipelineDefinition) and dict(self) == dict(other)

    def __hash__(self) -> int:
        """Return a hash by the name alone: of its fields some are mappings, which have none."""
        return hash(self.pipeline)

    @property
    def command_name(self) -> str:
        """What a command calls the pipeline: the path of its file, as it was given, or the name."""
        return self._file or self.pipeline

    @property
    def events(self) -> FeatureView:
        """The view whose schema and event time all views share."""
        return self.views[0]

    @property
    def queries(self) -> list[Query]:
        """The pipeline's queries, in the order of the flow, with any engine."""
        return self.queries_of(None)

    def queries_of(self, engine: str | None) -> list[Query]:
        """Return the queries that the pipeline has with an engine."""
        views = [view.name for view in self.views]
        options = ["slices"] if self.publish and self.publish.slices else []
        dimensions, streams = (
            [one.name for one in each] for each in (self.dimensions, self.streams)
        )
        return dataflow.of(engine, views, dimensions, options, streams)

    def dimension(self, name: str) -> Dimension:
        """Return the dimension called `name`; KeyError where the pipeline has none."""
        return {dimension.name: dimension for dimension in self.dimensions}[name]

    def stream(self, name: str) -> Stream:
        """Return the stream called `name`; KeyError where the pipeline has none."""
        return {stream.name: stream for stream in self.streams}[name]

    @property
    def enriched(self) -> list[str]:
        """The events' columns that are taken of dimensions."""
        return [column for one in self.enrich for column in one.columns]

    @property
    def taken(self) -> dict[str, Any]:
        """What each of them is taken of: its dimension, attribute and keys."""
        return {column: of for one in self.enrich for column, of in one.taken.items()}

    def alerts_of(self, view: FeatureView) -> list[AlertRule]:
        """Return the rules over a view's features."""
        return [rule for rule in self.alerts if rule.view == view.name]

    @property
    def silence_rules(self) -> list[AlertRule]:
        """The alert rules of a pipeline without events."""
        return [rule for rule in self.alerts if rule.no_events is not None]

    @property
    def topics(self) -> dict[str, KafkaSink]:
        """The topics that are sent to, by the words that declare them."""
        alerts = self.alert_sinks
        found = {
            "sink.kafka": self.sink and self.sink.kafka,
            "alert_sinks.kafka": alerts and alerts.kafka,
        }
        return {where: words for where, words in found.items() if words}

    @property
    def kept(self) -> timedelta:
        """How old an event may be when it arrives, and how long its buckets are kept."""
        return duration(self.history)

    def kept_of(self, view: FeatureView) -> timedelta:
        """Return how long the buckets of a view are kept: not longer than its own `history`."""
        return min(self.kept, view.kept)

    def scales(self) -> dict[str, int]:
        """Return, for each double that a view adds up, the most digits kept after the point."""
        each = [view.scales() for view in self.views]
        names = dict.fromkeys(name for digits in each for name in digits)
        return {name: max(digits.get(name, 0) for digits in each) for name in names}

    def known_values(self) -> dict[str, tuple[str, ...]]:
        """Return the values an event may have, of the columns that every view splits by."""
        each = [view.known_values() for view in self.views]
        shared = [
            column
            for column in each[0]
            if all(column in known for known in each) and column not in self.enriched
        ]
        return {
            column: tuple(dict.fromkeys(value for known in each for value in known[column]))
            for column in shared
        }

    def allowed_values(self) -> dict[str, tuple[str, ...]]:
        """Return the values that each field may have: those that its rule names, else those known
        of it; a field that is not there may have any."""
        said = {name: rule.allowed for name, rule in self.quality.fields.items() if rule.allowed}
        return {**self.known_values(), **said}

    def overridden(self, said: Mapping[str, Any]) -> PipelineDefinition:
        """Return the definition with other values for some of its words, checked as a file's
        are."""
        try:
            definition = PipelineDefinition.model_validate({**self._said(), **said})
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(step) for step in first["loc"])
            raise UsageError(yaml_loader.sentence(first), where=place) from error
        definition._file = self._file
        return definition

    def _said(self) -> dict[str, Any]:
        """Return the words; a clock that is the source's is none."""
        return {
            word: value
            for word, value in dict(self).items()
            if word != "clock" or word in self.model_fields_set
        }

    def view(self, name: str) -> FeatureView:
        """Return the view called `name`."""
        for view in self.views:
            if view.name == name:
                return view
        hint = did_you_mean(name, [view.name for view in self.views])
        raise DefinitionError(f"unknown view {name!r}{hint}")


def shipped() -> list[str]:
    """Return the names of the pipelines that come with Tidemill."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def declaring(view: str, pipeline: str | None = None) -> PipelineDefinition:
    """Return the pipeline that declares the view called `view`: the one given, else a shipped
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
    """Return the pipeline called `pipeline`: a shipped name, or the path of a YAML file."""
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
    """Return the pipeline that the file at `path` declares, with the rules of its quality file;
    errors name file, line and field."""
    words, tree = yaml_loader.read(path, "pipeline", "pipeline: NAME ...")
    said = words.pop("quality", None)
    try:
        definition = PipelineDefinition.model_validate(words)
    except ValidationError as error:
        raise explained(path, tree, error, _words()) from error
    definition._file = "" if path.parent == SHIPPED else str(path)
    named = quality_file.name_of(said, path, tree)
    rules_file = quality_file.beside(path, named)
    if rules_file is None:
        return definition
    return definition.overridden({"quality": quality_file.read(rules_file, definition.events)})


def _words() -> Words:
    return {
        "": PipelineDefinition,
        **{f"source.{kind.name}": kind.words for kind in kinds().values()},
        "triggers": Triggers,
        "maintenance": Maintenance,
        "publish": Publishing,
        "sink": Sink,
        "sink.kafka": KafkaSink,
        "alerts": AlertRule,
        "alert_sinks": AlertSinks,
        "alert_sinks.kafka": AlertTopic,
        "alert_sinks.webhook": Webhook,
        "views": FeatureView,
        "dimensions": Dimension,
        **{f"dimensions.source.{kind.name}": kind.words for kind in kinds().values()},
        "enrich": Enrichment,
        "streams": Stream,
        "streams.join": Join,
        "streams.join.left": Side,
        "streams.join.right": Side,
        "streams.distinct": Distinct,
        "streams.span": Span,
        "streams.sessions": Sessions,
        "streams.totals": Totals,
        "streams.process": Process,
    }
