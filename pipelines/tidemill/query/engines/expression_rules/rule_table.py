"""The rule of each kind of expression."""

from __future__ import annotations

from sqlglot import exp

from tidemill.query.engines.expression_rules import (
    aggregate_functions,
    casts,
    choices,
    nested,
    numbers,
    texts,
    time_functions,
)
from tidemill.query.engines.expression_rules.rule import Rule, Types, name_of, refuse


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
    exp.Interval: time_functions.interval,
    exp.Paren: choices.as_it_is,
    exp.Neg: numbers.same_number,
    exp.Add: numbers.sum_or_difference,
    exp.Sub: numbers.sum_or_difference,
    exp.Mul: numbers.product,
    exp.Div: numbers.quotient,
    exp.IntDiv: numbers.whole_division("tidemill_div"),
    exp.Mod: numbers.whole_division("tidemill_mod"),
    exp.BitwiseRightShift: numbers.shifted,
    exp.BitwiseAnd: numbers.bits_in_both,
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
    exp.TryCast: casts.tried,
    exp.Count: aggregate_functions.count,
    exp.CountIf: aggregate_functions.count_if,
    exp.Sum: aggregate_functions.total,
    exp.Avg: aggregate_functions.average,
    exp.Min: aggregate_functions.extreme,
    exp.Max: aggregate_functions.extreme,
    exp.ArgMin: aggregate_functions.by_extreme,
    exp.ArgMax: aggregate_functions.by_extreme,
    exp.Quantile: aggregate_functions.percentile,
    exp.Median: aggregate_functions.percentile,
    exp.LogicalAnd: choices.condition,
    exp.LogicalOr: choices.condition,
    exp.Lag: aggregate_functions.neighbour,
    exp.Lead: aggregate_functions.neighbour,
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank), aggregate_functions.number_of_row),
    exp.UnixSeconds: time_functions.unix_seconds,
    exp.CurrentTimestamp: time_functions.now,
    exp.Hour: time_functions.part_of_time("hour"),
    exp.Minute: time_functions.part_of_time("minute"),
    exp.Second: time_functions.part_of_time("second"),
    exp.Year: time_functions.part_of_time("year"),
    exp.Month: time_functions.part_of_time("month"),
    exp.Day: time_functions.part_of_time("day"),
    exp.Quarter: time_functions.part_of_time("quarter"),
    exp.DayOfYear: time_functions.part_of_time("dayofyear"),
    exp.DayOfWeek: time_functions.part_of_time("dayofweek"),
    exp.TimestampTrunc: time_functions.truncate,
    exp.TsOrDsToDate: time_functions.to_date,
    exp.TimeStrToTime: time_functions.as_time,
    exp.AtTimeZone: time_functions.in_zone,
    exp.TimeToStr: time_functions.format_time,
    exp.TsOrDsAdd: time_functions.days_added,
    exp.DateDiff: time_functions.days_between,
    exp.DPipe: texts.of_texts,
    exp.Concat: texts.concat,
    exp.ConcatWs: texts.joined,
    exp.Upper: texts.ascii("upper"),
    exp.Lower: texts.ascii("lower"),
    exp.Length: texts.length,
    exp.Left: texts.start_of_text,
    exp.Substring: texts.part_of_text,
    exp.Like: texts.like,
    exp.JSONExtractScalar: texts.json_value,
    exp.Array: nested.array,
    exp.ArrayCompact: nested.compact,
    exp.ArraySize: nested.size,
    exp.Explode: nested.explode,
    exp.Bracket: nested.map_value,
    exp.Anonymous: nested.by_name,
    exp.Reduce: nested.array_total,
}
