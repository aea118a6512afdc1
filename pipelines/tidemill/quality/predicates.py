"""The rules that an event must meet, each a reason and a condition; all are checked in one pass.

Reasons are `malformed`, `not_an_object`, `missing:<field>` (absent or null),
`empty:<field>`, `wrong_type:<field>`, `too_long:<field>`, `control_character:<field>`,
`unknown_value:<field>`, `out_of_range:<field>`, `bad_time:<field>`, `in_future` and `too_old`. No
rule reads a clock: ages count from `ingested_at`.

Rules are SQL text: a call of Spark's from Python costs as much as judging some fifty records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from pyspark.sql import DataFrame

from tidemill.features.definition import PipelineDefinition
from tidemill.quality.record import Field, event_time, fields, parsed, value

LONGEST_STRING = 1024
AHEAD = timedelta(minutes=5)
DIGITS = 15  # that a double keeps


def judge(bronze: DataFrame, pipeline: PipelineDefinition) -> DataFrame:
    """Yield bronze's columns, the parsed fields (null where refused) and `reasons`, sorted."""
    time = event_time(pipeline)
    rules = [
        *_of_record(),
        *(rule for field in fields(pipeline) for rule in _of_field(field, pipeline)),
        *_of_time(time, pipeline),
    ]
    found = ", ".join(f"CASE WHEN {broken} THEN '{reason}' END" for reason, broken in sorted(rules))
    # array_compact and array_sort take a lambda, which Spark interprets, with all that is below it.
    broken = f"array_except(array({found}), array(CAST(NULL AS STRING)))"
    none = "CAST(array() AS ARRAY<STRING>)"
    return parsed(bronze, pipeline).selectExpr(
        *bronze.columns,
        *(f"{value(field)} AS {field.name}" for field in fields(pipeline)),
        f"__time AS {time.name}",
        f"CASE WHEN {_is_plain(pipeline)} THEN {none} ELSE {broken} END AS reasons",
    )


def _is_plain(pipeline: PipelineDefinition) -> str:
    """Tell, in few comparisons, that no rule can be broken; null or false says nothing.

    Nearly every row is plain, and CASE leaves the rules of such a row unread: half of the time.
    """
    in_time = f"__time BETWEEN {_oldest(pipeline)} AND {_newest()}"
    return " AND ".join([in_time, *(_is_plain_field(f, pipeline) for f in fields(pipeline))])


def _is_plain_field(field: Field, pipeline: PipelineDefinition) -> str:
    if field.type != "string":
        outside = _out_of_range(field, pipeline)
        fits = f"{field.has_its_type} AND NOT {outside}" if outside else field.has_its_type
        present = f"(NOT {field.is_missing} AND {fits})"
        return present if field.required else f"({field.is_missing} OR {present})"
    plain = rf"{field.text} RLIKE r'\A[^\p{{Cntrl}}]{{1,{LONGEST_STRING}}}\z'"
    if known := pipeline.known_values().get(field.name):
        plain = f"{plain} AND {field.text} IN ({_listed(known)})"
    return f"({plain})" if field.required else f"({field.is_missing} OR {plain})"


def _oldest(pipeline: PipelineDefinition) -> str:
    return f"ingested_at - INTERVAL '{int(pipeline.kept.total_seconds())}' SECOND"


def _newest() -> str:
    return f"ingested_at + INTERVAL '{int(AHEAD.total_seconds())}' SECOND"


def _listed(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _of_record() -> Iterator[tuple[str, str]]:
    yield "malformed", "__record IS NULL"
    yield "not_an_object", "NOT startswith(__kind, 'OBJECT<')"


_IS_OBJECT = "coalesce(startswith(__kind, 'OBJECT<'), FALSE)"


def _of_field(field: Field, pipeline: PipelineDefinition) -> Iterator[tuple[str, str]]:
    if field.required:
        yield f"missing:{field.name}", f"{_IS_OBJECT} AND {field.is_missing}"
    yield f"wrong_type:{field.name}", f"NOT {field.is_missing} AND NOT {field.has_its_type}"
    if field.type == "string":
        yield from _of_text(field, pipeline)
    elif outside := _out_of_range(field, pipeline):
        is_number = f"NOT {field.is_missing} AND {field.has_its_type}"
        yield f"out_of_range:{field.name}", f"{is_number} AND {outside}"


def _out_of_range(field: Field, pipeline: PipelineDefinition) -> str | None:
    """Yield the condition of a number that the declared type cannot hold, or of a double that
    cannot be added up with the digits that the views keep; None for types without bounds."""
    if field.type.startswith("decimal"):
        return f"{value(field)} IS NULL"
    if field.type == "bigint":
        return f"{value(field)} IS NULL"
    if field.type != "double":
        return None
    limit = f"1e{DIGITS - pipeline.scales().get(field.name, -308 + DIGITS)}D"
    return f"NOT coalesce(abs({value(field)}) < {limit}, FALSE)"


def _of_text(field: Field, pipeline: PipelineDefinition) -> Iterator[tuple[str, str]]:
    text = field.text
    yield f"empty:{field.name}", f"{text} = ''"
    yield f"too_long:{field.name}", f"char_length({text}) > {LONGEST_STRING}"
    yield f"control_character:{field.name}", rf"{text} RLIKE r'\p{{Cntrl}}'"
    if known := pipeline.known_values().get(field.name):
        yield f"unknown_value:{field.name}", f"{text} != '' AND {text} NOT IN ({_listed(known)})"


def _of_time(time: Field, pipeline: PipelineDefinition) -> Iterator[tuple[str, str]]:
    yield f"missing:{time.name}", f"{_IS_OBJECT} AND {time.is_missing}"
    number = f"startswith({time.found}, 'DECIMAL') OR {time.found} IN ('BIGINT', 'DOUBLE', 'FLOAT')"
    is_time = f"({number} OR {time.found} = 'STRING')"
    yield f"wrong_type:{time.name}", f"NOT {time.is_missing} AND NOT {is_time}"
    yield f"bad_time:{time.name}", f"NOT {time.is_missing} AND {is_time} AND __time IS NULL"
    yield "in_future", f"__time > {_newest()}"
    yield "too_old", f"__time < {_oldest(pipeline)}"
