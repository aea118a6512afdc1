"""A feature as it is declared: a sentence in Python, a mapping in YAML, one model behind both.

count().by("event_type", ["select", "view"]).over("1h", "1d")
- count: {by: {event_type: [select, view]}}
  over: [1h, 1d]

sum_("amount", scale=2).where("event_type = 'buy'").over("1h").offset("1d").named("spend")
- sum: {of: amount, scale: 2}
  where: event_type = 'buy'
  over: [1h]
  offset: 1d
  name: spend

count().over({"calendar": "day", "zone": "Europe/Berlin"})
- count:
  over: [{calendar: day, zone: Europe/Berlin}]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, InstanceOf, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from tidemill.errors import DefinitionError
from tidemill.features.aggregates import Aggregate, aggregates
from tidemill.features.suggestions import did_you_mean
from tidemill.features.types import LENGTH_SCHEMA, NAME_SCHEMA, Identifier, is_duration
from tidemill.features.windows import Window
from tidemill.features.windows.period import SCHEMAS

RATIO = "ratio"
RATIO_OF = ("of", "to")
BESIDE = ("where", "over", "offset", "name", "empty")
Scalar = bool | int | float | str


class Feature(BaseModel):
    """An aggregate of the events that meet a condition, split by the values of a column, over
    windows.

    `inputs` are the event's columns by the aggregate's roles (of a ratio: the two features, without
    their windows), `parameters` its numbers. `empty` is the value over an empty window, of an
    aggregate that has none of its own there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    aggregate: str
    inputs: dict[str, Identifier] = {}
    parameters: dict[str, Any] = {}
    column: Identifier | None = None
    values: tuple[Identifier, ...] = ()
    condition: str | None = None
    windows: tuple[InstanceOf[Window], ...] = ()
    label: Identifier | None = None
    when_nothing: Scalar | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_yaml(cls, data: Any) -> Any:
        """Take the words of a file as well as the fields."""
        if not isinstance(data, Mapping) or "aggregate" in data:
            return data
        return _read(data)

    @model_validator(mode="after")
    def _check(self) -> Feature:
        if self.aggregate == RATIO:
            _take(RATIO, "feature", RATIO_OF, self.inputs)
            _take(RATIO, "number", (), self.parameters)
            if self.column or self.condition is not None:
                raise ValueError("a ratio takes no 'by' and no 'where': its features do")
            return self
        if self.column and not self.values:
            raise ValueError(f"'by: {{{self.column}: ...}}' takes a list of values, found none")
        declared = known(self.aggregate)
        _take(self.aggregate, "column", declared.inputs, self.inputs)
        _numbers(declared, self.parameters)
        if self.when_nothing is not None and declared.empty != "NULL":
            raise ValueError(f"{self.aggregate} has its own value over an empty window: no 'empty'")
        return self

    def by(self, column: str, values: Iterable[str]) -> Feature:
        """Return the feature split by `values` of `column`: one column of gold for each."""
        return self._with(column=column, values=tuple(values))

    def where(self, condition: str) -> Feature:
        """Return the feature of the events that meet a SQL condition over the event's columns."""
        return self._with(condition=condition)

    def over(self, *windows: str | Mapping[str, str]) -> Feature:
        """Return the feature over `windows`, such as "1h", "12h", "1d", in any order, or
        {"calendar": "day", "zone": "Europe/Berlin"}, {"tumbling": "15m"}: since that began; or
        "lifetime"."""
        return self._with(windows=tuple(map(Window.parse, windows)))

    def offset(self, ago: str) -> Feature:
        """Return the feature over the same windows, ended so long ago."""
        if not self.windows:
            raise ValueError("say over(...) first: the offset is that of the windows")
        return self._with(windows=tuple(window.earlier(ago) for window in self.windows))

    def named(self, name: str) -> Feature:
        """Return the feature with a name in the place of its column's."""
        return self._with(label=name)

    def empty(self, value: Scalar) -> Feature:
        """Return the feature with a value other than null over an empty window."""
        return self._with(when_nothing=value)

    def _with(self, **words: Any) -> Feature:
        return Feature(**{**dict(self), **words})

    @property
    def stem(self) -> str:
        """What begins the names of the feature's columns, after the value they are split by."""
        if self.label:
            return self.label
        return next(iter(self.inputs.values()), "") if self.aggregate != RATIO else ""

    @property
    def given(self) -> dict[str, Any]:
        """The aggregate's parameters, with its defaults for those that are not said."""
        declared = known(self.aggregate).parameters
        return {name: self.parameters.get(name, p.default) for name, p in declared.items()}

    def words(self) -> dict[str, Any]:
        """Return the feature as a file says it."""
        options: dict[str, Any] = {**self.inputs, **self.parameters}
        options = {n: list(v) if isinstance(v, tuple) else v for n, v in options.items()}
        if self.column:
            options["by"] = {self.column: list(self.values)}
        offsets = {window.ago for window in self.windows if window.ago}
        beside = {
            "where": self.condition,
            "over": [window.words() for window in self.windows],
            "offset": next(iter(offsets), None),
            "name": self.label,
            "empty": self.when_nothing,
        }
        return {self.aggregate: options, **{n: v for n, v in beside.items() if v is not None}}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the JSON Schema of the words that a file takes."""
        return {"oneOf": [_schema_of(name) for name in (*aggregates(), RATIO)]}


def known(name: str) -> Aggregate:
    """Return the aggregate called `name`; ValueError with the nearest name when there is none."""
    known_aggregate = aggregates().get(name)
    if known_aggregate is None:
        hint = did_you_mean(name, [*aggregates(), RATIO])
        raise ValueError(f"unknown aggregate {name!r}{hint}")
    return known_aggregate


def aggregate(name: str, **words: Any) -> Feature:
    """Return the feature of any aggregate by name, an installed package's too: columns and numbers
    by their names, such as `aggregate("sum", of="amount", scale=2)`."""
    roles = RATIO_OF if name == RATIO else tuple(known(name).inputs)
    said = {word: value for word, value in words.items() if value is not None}
    inputs = {role: said.pop(role) for role in roles if role in said}
    return Feature(aggregate=name, inputs=inputs, parameters=said)


def _take(name: str, what: str, wanted: Iterable[str], given: Mapping[str, Any]) -> None:
    """Refuse other words than the wanted ones."""
    wanted = tuple(wanted)
    for word in given:
        if word not in wanted:
            raise ValueError(f"{name} takes no {word!r}{did_you_mean(word, wanted)}")
    for word in wanted:
        if word not in given:
            raise ValueError(f"{name} takes a {what}: {word}")


def _numbers(declared: Aggregate, given: dict[str, Any]) -> None:
    """Check the parameters, each in its place."""
    for word in given:
        if word not in declared.parameters:
            words = (*declared.inputs, *declared.parameters, "by")
            hint = did_you_mean(word, words)
            takes = f", it takes {', '.join(words)}" if not hint else hint
            raise ValueError(f"{declared.name} takes no {word!r}{takes}")
    for name, parameter in declared.parameters.items():
        if name in given:
            given[name] = parameter.read(name, given[name])
        elif not isinstance(parameter.default, int | float | tuple | None):
            raise ValueError(f"{declared.name} takes a number: {name}, {parameter.words}")


def _read(data: Mapping[str, Any]) -> dict[str, Any]:
    names = [str(name) for name in data if name not in BESIDE]
    if len(names) != 1:
        raise ValueError(
            f"a feature has one aggregate beside {', '.join(BESIDE)}; found {names or 'none'}"
        )
    name, said = names[0], data[names[0]]
    roles = RATIO_OF if name == RATIO else tuple(known(name).inputs)
    options = _options(name, said, roles)
    by = _read_by(options.pop("by", None))
    inputs = {role: str(options.pop(role)) for role in roles if role in options}
    return {
        "aggregate": name,
        "inputs": inputs,
        "parameters": options,
        **by,
        "condition": _text("where", data.get("where")),
        "windows": _windows(data),
        "label": data.get("name"),
        "when_nothing": data.get("empty"),
    }


def _options(name: str, said: Any, roles: tuple[str, ...]) -> dict[str, Any]:
    if said is None:
        return {}
    if isinstance(said, str) and roles == ("of",):
        return {"of": said}
    if not isinstance(said, Mapping):
        raise ValueError(f"{name} takes words such as 'of: column', found {said!r}")
    return {str(word): value for word, value in said.items()}


def _text(word: str, said: Any) -> str | None:
    if said is not None and not isinstance(said, str):
        raise ValueError(f"'{word}' takes a text, found {said!r}")
    return said


def _read_by(by: Any) -> dict[str, Any]:
    if by is None:
        return {}
    if not isinstance(by, Mapping) or len(by) != 1:
        raise ValueError(f"'by' takes one column with its values, found {by!r}")
    ((column, values),) = by.items()
    if not isinstance(values, list | tuple) or not values:
        raise ValueError(f"'by: {{{column}: ...}}' takes a list of values, found {values!r}")
    return {"column": str(column), "values": tuple(str(value) for value in values)}


def _windows(data: Mapping[str, Any]) -> tuple[Window, ...]:
    over, offset = data.get("over"), data.get("offset")
    if not isinstance(over, list | tuple) or not over:
        raise ValueError(f"'over' takes a list of windows such as [1h, 1d], found {over!r}")
    try:
        windows = tuple(map(Window.parse, over))
    except DefinitionError as error:
        raise ValueError(str(error)) from error
    if offset is None:
        return windows
    return tuple(w.earlier(is_duration(str(offset))) for w in windows)


def _schema_of(name: str) -> JsonSchemaValue:
    """Return what a file may say of one aggregate."""
    declared = None if name == RATIO else known(name)
    roles = tuple(declared.inputs) if declared else RATIO_OF
    properties: dict[str, Any] = dict.fromkeys(roles, NAME_SCHEMA)
    required = list(roles)
    for word, parameter in declared.parameters.items() if declared else ():
        one = {
            "type": "integer" if parameter.type is int else "number",
            "minimum": parameter.low,
            "maximum": parameter.high,
        }
        properties[word] = {"type": "array", "items": one} if parameter.many else one
        if not isinstance(parameter.default, int | float | tuple | None):
            required.append(word)
    values = {"type": "array", "items": NAME_SCHEMA, "minItems": 1}
    properties["by"] = {
        "type": "object",
        "additionalProperties": values,
        "minProperties": 1,
        "maxProperties": 1,
    }
    options: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    forms = [options] if required else [options, {"type": "null"}]
    if required == ["of"]:
        forms.append(NAME_SCHEMA)
    summary = declared.summary if declared else "A feature divided by another, over each window."
    return {
        "type": "object",
        "description": summary,
        "properties": {
            name: {"anyOf": forms},
            "over": {"type": "array", "items": {"anyOf": [LENGTH_SCHEMA, *SCHEMAS]}, "minItems": 1},
            "where": {"type": "string", "description": "a SQL condition over the event's columns"},
            "offset": LENGTH_SCHEMA,
            "name": NAME_SCHEMA,
            "empty": {"type": ["string", "number", "boolean"]},
        },
        "required": [name, "over"],
        "additionalProperties": False,
    }
