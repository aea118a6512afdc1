"""The rules as a suite of Great Expectations: a second reading of the same rules, by another
engine, on a frame of plain columns.

    records ──probe──► record_id, typed fields, __kind, __type_<field>, __ahead ──suite──► reasons

`predicates` is what clean goes by; a test holds the two to the same reasons. The suite of events
has only the rules that a typed row can break: a quality file that became stricter shows there.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.errors import SetupError
from tidemill.lake.catalog import LongerHistory
from tidemill.pipeline.silver.validation.record import event_time, fields, parsed, value
from tidemill.pipeline.silver.validation.rules import Rule, rules

KIND, AHEAD = "__kind", "__ahead"  # the JSON type of the record; microseconds ahead of arrival
OF_RECORDS = ("malformed", "not_an_object", "wrong_type", "bad_time")
Expectation = Any  # Great Expectations is an extra


def gx() -> ModuleType:
    """Return Great Expectations, which then sends nothing home; SetupError where it is not
    there."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    try:
        import great_expectations
    except ImportError as error:
        raise SetupError(
            "great_expectations is not installed",
            where="quality",
            expected="pip install 'tidemill[quality]'",
        ) from error
    return great_expectations


def probe(bronze: DataFrame, pipeline: PipelineDefinition) -> DataFrame:
    """Return the records as plain columns: what Great Expectations reads."""
    time, every = event_time(pipeline), fields(pipeline)
    types = (
        f"nullif(regexp_extract({f.found}, '^[A-Z]+', 0), 'VOID') AS {f.found}"
        for f in (*every, time)
    )
    return parsed(bronze, pipeline).selectExpr(
        "record_id",
        f"regexp_extract(__kind, '^[A-Z]+', 0) AS {KIND}",
        *types,
        *(f"{value(field)} AS {field.name}" for field in every),
        f"__time AS {time.name}",
        f"unix_micros(__time) - unix_micros(ingested_at) AS {AHEAD}",
    )


def of_events(events: DataFrame, pipeline: PipelineDefinition) -> DataFrame:
    """Return events as the suite of events reads them."""
    micros = F.unix_micros(event_time(pipeline).name) - F.unix_micros("ingested_at")
    return events.withColumn(AHEAD, micros)


def record_suite(pipeline: PipelineDefinition) -> list[Expectation]:
    """Return what every record must be, each expectation with its reason."""
    return [one for rule in rules(pipeline) for one in _expected(rule, typed=False)]


def event_suite(
    pipeline: PipelineDefinition, longer: Sequence[LongerHistory] = ()
) -> list[Expectation]:
    """Return what every accepted event must be, each expectation with its reason; `longer` as the
    lake has it, of which the longest holds for all."""
    event_rules = [rule for rule in rules(pipeline, longer) if rule.word not in OF_RECORDS]
    return [one for rule in event_rules for one in _expected(rule, typed=True)]


def reasons(results: Iterable[Any], key: str = "record_id") -> dict[str, list[str]]:
    """Return, by the key of each row that broke something, its reasons, sorted; of results that
    were
        asked for complete."""
    by_key: dict[str, set[str]] = defaultdict(set)
    for result in results:
        for row in result.result.get("unexpected_index_list") or ():
            by_key[row[key]].add(result.expectation_config.meta["reason"])
    return {key: sorted(broken) for key, broken in by_key.items()}


def _expected(rule: Rule, *, typed: bool) -> Iterator[Expectation]:
    if rule.word == "missing" and typed:
        yield _column(rule, "ValuesToNotBeNull", rule.of.name)
    elif rule.word == "out_of_range":
        yield from _in_range(rule, typed)
    else:
        yield _EXPECTED[rule.word](rule)


def _column(rule: Rule, what: str, column: str, where: Any = None, **words: Any) -> Expectation:
    """Return `ExpectColumn<what>` of a column, for the rows that meet a condition."""
    if where is not None:
        words["row_condition"] = where
    made = getattr(gx().expectations, f"ExpectColumn{what}")
    return made(column=column, meta={"reason": rule.reason}, **words)


def _in_range(rule: Rule, typed: bool) -> Iterator[Expectation]:
    field, within = rule.of, rule.range
    if not typed:
        yield _column(rule, "ValuesToNotBeNull", field.name, _has_type(rule))
    bounds: dict[str, Any] = {}
    if within.limit is not None:
        bounds = {"min_value": -within.limit, "max_value": within.limit}
        yield _column(
            rule, "ValuesToBeBetween", field.name, strict_min=True, strict_max=True, **bounds
        )
    if within.low is not None or within.high is not None:
        bounds = {"min_value": within.low, "max_value": within.high}
        yield _column(rule, "ValuesToBeBetween", field.name, **bounds)


def _where(column: str) -> Any:
    """Return a column to make a condition of."""
    gx()
    from great_expectations.expectations.row_conditions import Column

    return Column(column)


def _has_type(rule: Rule) -> Any:
    return _where(rule.of.found).is_in([*rule.types])


def _unless_empty(rule: Rule) -> Any:
    return _where(rule.of.name) != "" if rule.skips_empty else None


def _micros(rule: Rule) -> int:
    longest = max([rule.age, *(one.history for one in rule.longer)])
    return int(longest.total_seconds()) * 1_000_000


_EXPECTED: Mapping[str, Callable[[Rule], Expectation]] = {
    "malformed": lambda r: _column(r, "ValuesToNotBeNull", KIND),
    "not_an_object": lambda r: _column(r, "ValuesToBeInSet", KIND, value_set=["OBJECT"]),
    "missing": lambda r: _column(r, "ValuesToNotBeNull", r.of.found, _where(KIND) == "OBJECT"),
    "wrong_type": lambda r: _column(r, "ValuesToBeInSet", r.of.found, value_set=[*r.types]),
    "empty": lambda r: _column(r, "ValueLengthsToBeBetween", r.of.name, min_value=1),
    "too_long": lambda r: _column(r, "ValueLengthsToBeBetween", r.of.name, max_value=r.longest),
    "control_character": lambda r: _column(
        r, "ValuesToNotMatchRegex", r.of.name, regex=r"\p{Cntrl}"
    ),
    "unknown_value": lambda r: _column(
        r, "ValuesToBeInSet", r.of.name, _unless_empty(r), value_set=[*r.values]
    ),
    "bad_format": lambda r: _column(
        r, "ValuesToMatchRegex", r.of.name, _unless_empty(r), regex=r.pattern
    ),
    "bad_time": lambda r: _column(r, "ValuesToNotBeNull", r.of.name, _has_type(r)),
    "in_future": lambda r: _column(r, "ValuesToBeBetween", AHEAD, max_value=_micros(r)),
    "too_old": lambda r: _column(r, "ValuesToBeBetween", AHEAD, min_value=-_micros(r)),
}
