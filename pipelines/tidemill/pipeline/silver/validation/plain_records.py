"""Plain records: those that a comparison of texts proves to break no rule, without parsing JSON.

    {"event_id": "e1", "gti": "title 7", "amount": 12.5}
     ────────         ──    ...                           cut at the quotes: name, what is after it,
                                                          and where that is a colon alone, the text

Nearly every record is plain, and to parse JSON as a variant takes far longer. One regular
expression says of the whole text that it is a flat object, without a backslash or a control
character, and that each declared field has a value of its type. What it does not say is that no
name stands twice. A text without other names has as many quotes as its fields need, so one more
tells; with others, Spark lists the names. A record that is not plain may still be valid: `judge`
decides on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import DataFrame

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.lake.catalog import LongerHistory
from tidemill.lake.parameters import quoted
from tidemill.pipeline.silver.validation import conditions
from tidemill.pipeline.silver.validation.record import Field, enriched, event_time, fields
from tidemill.pipeline.silver.validation.rules import Rule, rules

PLAIN = "__plain"
# What \p{Cntrl} is, one by one: Java looks them up in a table, where it asks of each character what
# class it has.
_CONTROLS = "".join(rf"\x{code:02X}" for code in (*range(0x20), 0x7F))
_CHARACTER = rf'[^"\\{_CONTROLS}]'
_TIME = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})"
)
# As many digits as a double keeps; -0 is left to JSON, for which it is 0.
_INTEGER = r"(?:0|-?[1-9][0-9]{0,14})"
_NUMBER = rf"{_INTEGER}(?:\.[0-9]{{1,9}})?"
_TOKENS = {"boolean": "true|false", "bigint": _INTEGER, "double": _NUMBER, "decimal": _NUMBER}
_OTHER = rf'"{_CHARACTER}{{0,1024}}+"|{_NUMBER}|true|false|null'
_PAIRS = 256  # in one record at most


def plain(
    bronze: DataFrame, pipeline: PipelineDefinition, longer: Sequence[LongerHistory] = ()
) -> DataFrame:
    """Return bronze's columns, the fields' values where the record is plain, else null, and
    `__plain`, whether it is; `longer` as the lake has it."""
    by_reason = {rule.reason: rule for rule in rules(pipeline, longer)}
    time = event_time(pipeline)
    every = [*fields(pipeline), time]
    proof = " AND ".join(
        [
            _each_name_once(every),
            conditions.in_time("__time", by_reason),
            *(_is_plain(field, by_reason) for field in fields(pipeline)),
        ]
    )
    shape = quoted(_shape(every, by_reason))
    cut = f"""CASE WHEN raw_payload RLIKE {shape} THEN split(raw_payload, '"') END AS __cut"""
    return (
        bronze.selectExpr("*", cut)
        .selectExpr("*", *(f"array_position(__cut, '{f.name}') AS __at_{f.name}" for f in every))
        .selectExpr("*", *(f"get(__cut, __at_{f.name}) AS __after_{f.name}" for f in every))
        .selectExpr("*", *(f"{_value(f)} AS __plain_{f.name}" for f in fields(pipeline)))
        .selectExpr("*", f"{_time(time)} AS __time")
        .selectExpr("*", f"coalesce({proof}, FALSE) AS {PLAIN}")
        .selectExpr(
            *bronze.columns,
            *(_if_plain(f"__plain_{f.name}", f.name) for f in fields(pipeline)),
            *enriched(pipeline),
            _if_plain("__time", time.name),
            PLAIN,
        )
    )


def _if_plain(sql: str, name: str) -> str:
    return f"CASE WHEN {PLAIN} THEN {sql} END AS {name}"


def _shape(every: list[Field], by_reason: Mapping[str, Rule]) -> str:
    """Return the pattern of a plain text. Each repetition keeps what it has taken, so a text is
    read once, from left to right."""
    names = "|".join(field.name for field in every)
    other = rf'"(?!(?:{names})"){_CHARACTER}{{0,256}}+": ?(?:{_OTHER})'
    declared = (f'"{field.name}": ?(?:{_values(field, by_reason)})' for field in every)
    pair = "|".join([*declared, other])
    return rf'\A\{{(?:(?:{pair})(?:, ?(?=")|(?=\}}\z))){{1,{_PAIRS}}}+\}}\z'


def _values(field: Field, by_reason: Mapping[str, Rule]) -> str:
    """Return the pattern of a field's values."""
    if field.type == "timestamp":
        return f'"{_TIME}"|[1-9][0-9]{{0,14}}+'
    null = "" if field.required else "|null"
    if field.type != "string":
        return _TOKENS[field.type.split("(")[0]] + null
    least = 1 if f"empty:{field.name}" in by_reason else 0
    longest = by_reason[f"too_long:{field.name}"].longest
    return rf'"{_CHARACTER}{{{least},{longest}}}+"{null}'


def _each_name_once(every: list[Field]) -> str:
    quotes = " + ".join(
        f"CASE WHEN {_has_text(f)} THEN 4 WHEN {_is_named(f)} THEN 2 ELSE 0 END" for f in every
    )
    # A value may be the name of a field that comes later.
    found = " AND ".join(f"(__at_{f.name} = 0 OR {_is_named(f)})" for f in every)
    names = "json_object_keys(raw_payload)"
    distinct = f"size(array_distinct({names})) = size({names})"
    # Not OR, of which Spark computes ahead what stands twice in it.
    return f"CASE WHEN size(__cut) = 1 + {quotes} THEN TRUE ELSE {found} AND {distinct} END"


def _is_named(field: Field) -> str:
    """Return the condition that what was found is the field's name and not the text of another."""
    return f"startswith(__after_{field.name}, ':')"


def _has_text(field: Field) -> str:
    return f"__after_{field.name} IN (':', ': ')"


def _text(field: Field) -> str:
    return f"CASE WHEN {_has_text(field)} THEN get(__cut, __at_{field.name} + 1) END"


def _token(field: Field) -> str:
    """Return the value that is no text, `null` where there is none."""
    token = f"translate(__after_{field.name}, ' :,}}', '')"
    return f"CASE WHEN {_is_named(field)} THEN {token} ELSE 'null' END"


def _value(field: Field) -> str:
    if field.type == "string":
        return _text(field)
    return f"try_cast({_token(field)} AS {field.type})"


def _time(time: Field) -> str:
    millis = f"timestamp_millis(try_cast({_token(time)} AS BIGINT))"
    return (
        f"CASE WHEN {_has_text(time)} THEN try_cast({_text(time)} AS TIMESTAMP) ELSE {millis} END"
    )


def _is_plain(field: Field, by_reason: Mapping[str, Rule]) -> str:
    """Return the condition that a value, of the shape already, breaks no rule."""
    value = f"__plain_{field.name}"
    valid = " AND ".join([f"{value} IS NOT NULL", *_conditions(field, value, by_reason)])
    if field.required:
        return valid
    missing = f"{value} IS NULL" if field.type == "string" else f"{_token(field)} = 'null'"
    return f"({missing} OR ({valid}))"


def _conditions(field: Field, value: str, by_reason: Mapping[str, Rule]) -> Iterator[str]:
    if known := by_reason.get(f"unknown_value:{field.name}"):
        yield f"{value} IN ({conditions.listed(known.values)})"
    if formed := by_reason.get(f"bad_format:{field.name}"):
        yield f"{value} RLIKE {quoted(formed.pattern)}"
    if number := by_reason.get(f"out_of_range:{field.name}"):
        yield conditions.in_range(value, number.range)
