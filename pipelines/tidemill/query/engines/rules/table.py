"""The rule of each kind of expression."""

from __future__ import annotations

from sqlglot import exp

from tidemill.query.engines.rules import (
    aggregates,
    casts,
    choices,
    nested,
    numbers,
    texts,
    times,
)
from tidemill.query.engines.rules.rule import Rule, Types, name_of, refuse


def translated(node: exp.Expr, types: Types) -> tuple[exp.Expr, str]:
    """Return the expression as DuckDB reads it, its operands being so already, and its type;
    UntranslatableError where it would be answered otherwise."""
    rule = RULES.get(type(node))
    if rule is None:
        raise refuse(name_of(node))
    return rule(node, types)


RULES: dict[type[exp.Expr], Rule] = {
    exp.Literal: numbers.literal,
    exp.Boolean: choices.truth,
    exp.Null: choices.null,
    exp.Interval: times.interval,
    exp.Paren: choices.as_it_is,
    exp.Neg: numbers.same_number,
    exp.Add: numbers.sum_or_difference,
    exp.Sub: numbers.sum_or_difference,
    exp.Mul: numbers.product,
    exp.Div: numbers.quotient,
    exp.IntDiv: numbers.whole_division("tidemill_div"),
    exp.Mod: numbers.whole_division("tidemill_mod"),
    exp.Abs: numbers.same_number,
    exp.Round: numbers.rounded,
    exp.Floor: numbers.to_whole("floor"),
    exp.Ceil: numbers.to_whole("ceil"),
    exp.Ln: numbers.logarithm,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), choices.comparison),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), choices.comparison),
    exp.Is: choices.truth,
    exp.In: choices.is_in,
    exp.Between: choices.between,
    exp.Exists: choices.truth,
    **dict.fromkeys((exp.And, exp.Or, exp.Not), choices.condition),
    exp.Case: choices.chosen,
    exp.If: choices.chosen,
    exp.Coalesce: choices.chosen,
    exp.Nullif: lambda node, types: (choices.comparison(node, types)[0], types[0]),
    exp.Greatest: choices.chosen,
    exp.Least: choices.chosen,
    exp.Cast: casts.casted,
    exp.Count: aggregates.count,
    exp.CountIf: aggregates.count_if,
    exp.Sum: aggregates.total,
    exp.Avg: aggregates.average,
    exp.Min: aggregates.extreme,
    exp.Max: aggregates.extreme,
    exp.ArgMin: aggregates.by_extreme,
    exp.ArgMax: aggregates.by_extreme,
    exp.Quantile: aggregates.percentile,
    exp.Median: aggregates.percentile,
    exp.LogicalAnd: choices.condition,
    exp.LogicalOr: choices.condition,
    exp.Lag: aggregates.neighbour,
    exp.Lead: aggregates.neighbour,
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank), aggregates.number_of_row),
    exp.UnixSeconds: times.unix_seconds,
    exp.CurrentTimestamp: times.now,
    exp.Hour: times.part_of_time("hour"),
    exp.Minute: times.part_of_time("minute"),
    exp.Second: times.part_of_time("second"),
    exp.Year: times.part_of_time("year"),
    exp.Month: times.part_of_time("month"),
    exp.Day: times.part_of_time("day"),
    exp.Quarter: times.part_of_time("quarter"),
    exp.DayOfYear: times.part_of_time("dayofyear"),
    exp.DayOfWeek: times.part_of_time("dayofweek"),
    exp.TimestampTrunc: times.truncate,
    exp.TsOrDsToDate: times.to_date,
    exp.TimeStrToTime: times.as_time,
    exp.AtTimeZone: times.in_zone,
    exp.TimeToStr: times.format_time,
    exp.TsOrDsAdd: times.days_added,
    exp.DateDiff: times.days_between,
    exp.DPipe: texts.of_texts,
    exp.Concat: texts.concat,
    exp.Upper: texts.ascii("upper"),
    exp.Lower: texts.ascii("lower"),
    exp.Length: texts.length,
    exp.Left: texts.start_of_text,
    exp.Substring: texts.part_of_text,
    exp.Like: texts.like,
    exp.JSONExtractScalar: texts.json_value,
    exp.ArraySize: nested.size,
    exp.Explode: nested.explode,
    exp.Bracket: nested.map_value,
    exp.Anonymous: nested.by_name,
    exp.Reduce: nested.array_total,
}
