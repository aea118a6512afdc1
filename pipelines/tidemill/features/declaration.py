"""What a user declares of a feature view: its fields, as Python or a file gives them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from tidemill.features.feature import Feature
from tidemill.features.types import TYPE_SCHEMA, ColumnType, Duration, Identifier
from tidemill.features.windows import FARTHEST, duration

OnOverflow = Annotated[
    Literal["null", "stop"],
    BeforeValidator(lambda said: "null" if said is None else said),  # YAML's null is no text
    WithJsonSchema({"enum": ["null", "stop", None]}),
]


class Selected(BaseModel):
    """A column that is computed from the event's, row by row: `{bigint: "length(title)"}`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: ColumnType
    sql: str

    @model_validator(mode="before")
    @classmethod
    def _from_pair(cls, data: Any) -> Any:
        if isinstance(data, tuple | list) and len(data) == 2:
            return {"type": data[0], "sql": data[1]}
        if isinstance(data, Mapping) and len(data) == 1:
            ((type_, sql),) = data.items()
            return {"type": type_, "sql": sql}
        if isinstance(data, Mapping) and set(data) != {"type", "sql"}:
            raise ValueError(f"takes a type and a SQL expression, such as bigint: a + b; {data!r}")
        return data

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the JSON Schema of the pair that a file takes."""
        return {
            "type": "object",
            "description": "a type and a SQL expression, such as bigint: length(title)",
            "propertyNames": TYPE_SCHEMA,
            "additionalProperties": {"type": "string"},
            "minProperties": 1,
            "maxProperties": 1,
        }


class Declaration(BaseModel):
    """The fields of a feature view, each valid by itself."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    name: Identifier
    keys: tuple[Identifier, ...] = Field(min_length=1)
    event_time: Identifier
    event_schema: dict[Identifier, ColumnType] = Field(default_factory=dict, alias="schema")
    select: dict[Identifier, Selected] = {}
    bucket: Duration = "1m"
    history: Duration | None = None
    source: Identifier | None = None
    when_empty: Literal["zero", "delete"] = "zero"
    keep_empty: Duration = "7d"
    on_overflow: OnOverflow = "null"
    features: tuple[Feature, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _complete_schema(cls, data: Any) -> Any:
        """Take every column that keys and features name as a string where no schema is given."""
        if not isinstance(data, Mapping) or "schema" in data or "event_schema" in data:
            return data
        features = data.get("features") or ()
        named = [f.column for f in features if isinstance(f, Feature) and f.column]
        return {**data, "schema": {c: "string" for c in [*data.get("keys", ()), *named]}}

    @property
    def types(self) -> dict[str, str]:
        """The SQL types of an event's columns: its schema, its time, and what is selected."""
        declared = {name: _sql_type(type_) for name, type_ in self.event_schema.items()}
        chosen = {name: _sql_type(selected.type) for name, selected in self.select.items()}
        return {**declared, self.event_time: "TIMESTAMP", **chosen}

    @property
    def bucket_length(self) -> timedelta:
        """The length of a bucket."""
        return duration(self.bucket)

    @property
    def kept(self) -> timedelta:
        """How long buckets are kept, unless the pipeline's `history` is shorter."""
        return duration(self.history) if self.history else FARTHEST


def _sql_type(type_: str) -> str:
    return type_.rstrip("?").upper()
