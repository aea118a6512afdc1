"""Every rule as a SQL condition over the parsed record; all are checked in one pass.

Rules are SQL text: a call of Spark's from Python costs as much as judging some fifty records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pyspark.sql import DataFrame

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.features import attempts
from tidemill.features.expressions import fallible
from tidemill.lake.catalog import LongerHistory
from tidemill.lake.parameters import quoted
from tidemill.pipeline.silver.validation.conditions import (
    in_range,
    in_time,
    listed,
    newest,
    oldest,
)
from tidemill.pipeline.silver.validation.record import (
    Field,
    enriched,
    event_time,
    fields,
    parsed,
    value,
)
from tidemill.pipeline.silver.validation.rules import EXPRESSION_FAILED, Rule, rules

NONE = "CAST(array() AS ARRAY<STRING>)"  # the reasons of a record that breaks no rule
_IS_OBJECT = "coalesce(startswith(__kind, 'OBJECT<'), FALSE)"


def judge(
    bronze: DataFrame, pipeline: PipelineDefinition, longer: Sequence[LongerHistory] = ()
) -> DataFrame:
    """Return bronze's columns, the parsed fields (null where refused) and `reasons`, sorted;
    `longer` as the lake has it."""
    every = rules(pipeline, longer)
    cases = ", ".join(f"CASE WHEN {broken(rule)} THEN '{rule.reason}' END" for rule in every)
    # array_compact and array_sort take a lambda, which Spark interprets, with all that is below it.
    reasons = f"array_except(array({cases}), array(CAST(NULL AS STRING)))"
    judged = parsed(bronze, pipeline).selectExpr(
        *bronze.columns,
        *(f"{value(field)} AS {field.name}" for field in fields(pipeline)),
        *enriched(pipeline),
        f"__time AS {event_time(pipeline).name}",
        f"CASE WHEN {_is_plain(every, pipeline)} THEN {NONE} ELSE {reasons} END AS reasons",
    )
    return tried(judged, pipeline)


def tried(judged: DataFrame, pipeline: PipelineDefinition) -> DataFrame:
    """Return the judged rows, those that broke no rule with a reason for each expression of a view
    that fails on them."""
    time = pipeline.events.event_time
    selected, failing = [], set()
    for view in pipeline.views:
        chosen = list(attempts.selected(view))
        selected += [f"{fallible.or_null(c.sql, time)} AS __{view.name}__{c.name}" for c in chosen]
        for one in (*chosen, *attempts.of_features(view)):
            failing.add((f"{EXPRESSION_FAILED}:{view.name}.{one.name}", one.sql))
    if not failing:
        return judged
    each = (
        f"CASE WHEN NOT {fallible.holds(sql, time)} THEN '{r}' END" for r, sql in sorted(failing)
    )
    failures = f"array_except(array({', '.join(each)}), array(CAST(NULL AS STRING)))"
    names = [name for name in judged.columns if name != "reasons"]
    reasons = f"CASE WHEN size(reasons) = 0 THEN {failures} ELSE reasons END AS reasons"
    return judged.selectExpr("*", *selected).selectExpr(*names, reasons)


def broken(rule: Rule) -> str:
    """Return the condition, over the parsed record, of breaking the rule; null is no."""
    return _BROKEN[rule.word](rule)


def _missing(rule: Rule) -> str:
    return f"{_IS_OBJECT} AND {rule.of.is_missing}"


def _wrong_type(rule: Rule) -> str:
    return f"NOT {rule.of.is_missing} AND NOT {_has_type(rule)}"


def _has_type(rule: Rule) -> str:
    return f"(regexp_extract({rule.of.found}, '^[A-Z]+', 0) IN ({listed(rule.types)}))"


def _too_long(rule: Rule) -> str:
    return f"char_length({rule.of.text}) > {rule.longest}"


def _unknown_value(rule: Rule) -> str:
    return f"{_unless_empty(rule)}{rule.of.text} NOT IN ({listed(rule.values)})"


def _bad_format(rule: Rule) -> str:
    return f"{_unless_empty(rule)}NOT ({rule.of.text} RLIKE {quoted(rule.pattern)})"


def _unless_empty(rule: Rule) -> str:
    return f"{rule.of.text} != '' AND " if rule.skips_empty else ""


def _out_of_range(rule: Rule) -> str:
    is_number = f"NOT {rule.of.is_missing} AND {rule.of.has_its_type}"
    return f"{is_number} AND NOT ({in_range(value(rule.of), rule.range)})"


def _bad_time(rule: Rule) -> str:
    return f"NOT {rule.of.is_missing} AND {_has_type(rule)} AND __time IS NULL"


_BROKEN: Mapping[str, Callable[[Rule], str]] = {
    "malformed": lambda rule: "__record IS NULL",
    "not_an_object": lambda rule: "NOT startswith(__kind, 'OBJECT<')",
    "missing": _missing,
    "wrong_type": _wrong_type,
    "empty": lambda rule: f"{rule.of.text} = ''",
    "too_long": _too_long,
    "control_character": lambda rule: rf"{rule.of.text} RLIKE r'\p{{Cntrl}}'",
    "unknown_value": _unknown_value,
    "bad_format": _bad_format,
    "out_of_range": _out_of_range,
    "bad_time": _bad_time,
    "in_future": lambda rule: f"__time > {newest(rule)}",
    "too_old": lambda rule: f"__time < {oldest(rule)}",
}


def _is_plain(every: Iterable[Rule], pipeline: PipelineDefinition) -> str:
    """Tell, in few comparisons, that no rule can be broken; null or false says nothing.

    Nearly every row is plain, and CASE leaves the rules of such a row unread: half of the time.
    """
    by_reason = {rule.reason: rule for rule in every}
    conditions = (_is_plain_field(field, by_reason) for field in fields(pipeline))
    return " AND ".join([in_time("__time", by_reason), *conditions])


def _is_plain_field(field: Field, by_reason: Mapping[str, Rule]) -> str:
    if field.type == "string":
        plain = f"({_is_plain_text(field, by_reason)})"
        return plain if field.required else f"({field.is_missing} OR {plain})"
    number = by_reason.get(f"out_of_range:{field.name}")
    fits = field.has_its_type
    if number:
        fits = f"{fits} AND {in_range(value(field), number.range)}"
    present = f"(NOT {field.is_missing} AND {fits})"
    return present if field.required else f"({field.is_missing} OR {present})"


def _is_plain_text(field: Field, by_reason: Mapping[str, Rule]) -> str:
    least = 1 if f"empty:{field.name}" in by_reason else 0
    longest = by_reason[f"too_long:{field.name}"].longest
    plain = rf"{field.text} RLIKE r'\A[^\p{{Cntrl}}]{{{least},{longest}}}\z'"
    if known := by_reason.get(f"unknown_value:{field.name}"):
        plain = f"{plain} AND {field.text} IN ({listed(known.values)})"
    if formed := by_reason.get(f"bad_format:{field.name}"):
        plain = f"{plain} AND {field.text} RLIKE {quoted(formed.pattern)}"
    return plain
