"""The clauses of a query, translated in place, with the types of what they yield.

A clause that is not listed here, or an option of one, makes the whole statement Spark's. So does a
column of which it is not known where it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from tidemill.query.engines.expression_rules.attempted import without_attempt
from tidemill.query.engines.expression_rules.rule import call, cast, refuse
from tidemill.query.engines.expression_rules.rule_table import translated
from tidemill.query.engines.spark_types import SPARK, common, family

Columns = Mapping[str, str]  # of a relation: their types, in order

# What a node of a query may have beside its expressions; anything else makes it Spark's.
_CLAUSES: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        "with_ kind expressions distinct from_ joins where group having order limit offset".split()
    ),
    exp.SetOperation: frozenset(
        "with_ this expression distinct by_name side kind on order limit offset".split()
    ),
    exp.Table: frozenset({"this", "alias"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.Values: frozenset({"expressions", "alias"}),
    exp.Join: frozenset({"this", "side", "kind", "on"}),
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Group: frozenset({"expressions", "all"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "over"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
    exp.Filter: frozenset({"this", "expression"}),
}
_JOINS = {"", "INNER", "OUTER", "CROSS"}


@dataclass(frozen=True)
class QueryClauses:
    """One query, or a part of it; `named` are the relations of WITH, `known` the lake's."""

    named: Mapping[str, Columns]
    known: Mapping[str, Columns]

    def translate(self, query: exp.Expr, outer: Mapping[str, Columns]) -> dict[str, str]:
        """Translate a query in place and return the types of its columns; `outer` are the relations
        of the query around it, which a subquery may name."""
        _check(query)
        inner = self
        if with_ := query.args.get("with_"):
            _check(with_)
            for cte in with_.expressions:
                inner = inner._with(cte, outer)
        if isinstance(query, exp.SetOperation):
            return inner._both(query, outer)
        if isinstance(query, exp.Subquery):
            return inner.translate(query.this, outer)
        if isinstance(query, exp.Select):
            return inner._select(query, outer)
        raise refuse(query.key.upper())

    def _with(self, cte: exp.CTE, outer: Mapping[str, Columns]) -> QueryClauses:
        _check(cte)
        if isinstance(alias := cte.args["alias"], exp.TableAlias) and alias.columns:
            raise refuse("WITH and names of columns")
        columns = self.translate(cte.this, outer)
        return QueryClauses({**self.named, cte.alias: columns}, self.known)

    def _both(self, query: exp.SetOperation, outer: Mapping[str, Columns]) -> dict[str, str]:
        if query.args.get("by_name") or query.args.get("side") or query.args.get("on"):
            raise refuse("a union by name")
        left = self.translate(query.this, outer)
        right = self.translate(query.expression, outer)
        types = [common(pair) for pair in zip(left.values(), right.values(), strict=False)]
        if len(left) != len(right) or None in types:
            raise refuse("a union of other types")
        result = {name: str(type_) for name, type_ in zip(left, types, strict=True)}
        if query.args.get("distinct"):
            for type_ in result.values():
                _check_grouped(type_, False)
        self._order(query, {}, result)
        return result

    def _select(self, query: exp.Select, outer: Mapping[str, Columns]) -> dict[str, str]:
        if query.args.get("kind"):
            raise refuse(f"SELECT {query.args['kind']}")
        distinct = query.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise refuse("DISTINCT ON")
        _check_explode(query)
        relations = dict(outer)
        sources = [query.args.get("from_"), *query.args.get("joins", [])]
        for source in [each for each in sources if each is not None]:
            alias, columns = self._relation(source.this, outer)
            relations[alias] = columns
        scope = _Scope(self, relations, {})
        for join in query.args.get("joins", []):
            self._join(join, scope)
        result: dict[str, str] = {}
        for column in list(query.expressions):
            rounded = isinstance(column.unalias(), exp.Round)
            type_ = scope.translate(column)
            if distinct is not None:
                _check_grouped(type_, rounded)
            if column.alias_or_name in result:
                raise refuse("two columns of one name")
            result[column.alias_or_name] = type_
        for clause in ("where", "having"):
            if (condition := query.args.get(clause)) is not None:
                scope.translate(condition.this)
        if (group := query.args.get("group")) is not None:
            _check(group)
            for each in list(group.expressions):
                rounded = isinstance(each, exp.Round)
                _check_grouped(scope.translate(each), rounded)
        self._order(query, relations, result)
        return result

    def _relation(self, source: exp.Expr, outer: Mapping[str, Columns]) -> tuple[str, Columns]:
        """Return a relation's name in the query, and its columns."""
        _check(source)
        alias = source.args.get("alias")
        if isinstance(source, exp.Values):
            names = [column.name for column in alias.columns] if alias is not None else []
            return source.alias, dict(zip(names, self._values(source), strict=True))
        if alias is not None and alias.args.get("columns"):
            raise refuse("a table with names of columns")
        if isinstance(source, exp.Subquery):
            return source.alias_or_name, self.translate(source, outer)
        if not isinstance(source, exp.Table):
            raise refuse(source.key)
        name = source.name.lower()
        columns = self.named.get(source.name) or self.known.get(name)
        if columns is None:
            raise refuse(f"the table {source.sql(SPARK)}")
        return source.alias_or_name, columns

    def _values(self, values: exp.Values) -> list[str]:
        """Return the types of the columns of VALUES, which must be literals."""
        rows = []
        for row in values.expressions:
            cells = row.expressions if isinstance(row, exp.Tuple) else [row]
            rows.append([_Scope(self, {}, {}).translate(cell) for cell in list(cells)])
        types = [common(column) for column in zip(*rows, strict=True)]
        if None in types:
            raise refuse("VALUES of several types")
        return [str(type_) for type_ in types]

    def _join(self, join: exp.Join, scope: _Scope) -> None:
        _check(join)
        if str(join.args.get("kind") or "").upper() not in _JOINS:
            raise refuse(f"{join.args['kind']} JOIN")
        if (on := join.args.get("on")) is not None:
            scope.translate(on)

    def _order(self, query: exp.Expr, relations: Mapping[str, Columns], result: Columns) -> None:
        order = query.args.get("order")
        for ordered in order.expressions if order is not None else []:
            _Scope(self, relations, result).ordered(ordered)
        for clause in ("limit", "offset"):
            if (limit := query.args.get(clause)) is not None:
                amount = limit.expression
                if not isinstance(amount, exp.Literal) or amount.is_string:
                    raise refuse(f"a {clause} that is no number")


@dataclass(frozen=True)
class _Scope:
    """What the expressions of a query may name: columns of relations, and those that it returns."""

    query: QueryClauses
    relations: Mapping[str, Columns]
    result: Columns

    def translate(self, node: exp.Expr) -> str:
        """Translate an expression in place, its operands first, and return its type."""
        if isinstance(node, exp.Alias):
            return self.translate(node.this)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
            return next(iter(self.query.translate(node, self.relations).values()))
        if isinstance(node, exp.Dot):
            return self._field_of_json(node)
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Filter):
            _check(node)
            self.translate(node.expression.this)
            return self._around(node, self.translate(node.this))
        if isinstance(node, exp.Explode) and not _is_whole_column(node):
            raise refuse("explode within an expression")
        types = self._operands(node)
        new, type_ = translated(node, types)
        if isinstance(new, exp.Sum):
            new = self._sum(new, type_)
        if new is not node:
            node.replace(new)
        return type_

    def _field_of_json(self, node: exp.Dot) -> str:
        """Translate `from_json(text, 'name STRING').name`, the one form of a struct's field."""
        read, name = node.this, node.expression.name
        if not isinstance(read, exp.FromJson) or read.expression.name.upper() != (
            f"{name} STRING".upper()
        ):
            raise refuse("a field of a struct")
        if self.translate(read.this) != "string":
            raise refuse("from_json of no text")
        node.replace(call("json_extract_string", read.this, f"$.{name}"))
        return "string"

    def _operands(self, node: exp.Expr) -> list[str]:
        """Translate the operands; return the types of those that the result follows from."""
        if isinstance(node, exp.Case):
            if node.this is not None:
                raise refuse("CASE of a value")
            for branch in node.args["ifs"]:
                without_attempt(branch)
                self.translate(branch.this)
            results = [branch.args["true"] for branch in node.args["ifs"]]
            default = node.args.get("default")
            return [self.translate(each) for each in (*results, default) if each is not None] + (
                ["void"] if default is None else []
            )
        if isinstance(node, exp.If):
            self.translate(node.this)
            each = (node.args["true"], node.args.get("false"))
            return ["void" if one is None else self.translate(one) for one in each]
        if isinstance(node, exp.Reduce):
            return [self.translate(node.this), self.translate(node.args["initial"])]
        if isinstance(node, exp.ArgMin | exp.ArgMax) and isinstance(node.expression, exp.Struct):
            for field in node.expression.expressions:
                value = field.expression if isinstance(field, exp.PropertyEQ) else field
                if self.translate(value) in ("double",):
                    raise refuse("an order by a struct of doubles")
            return [self.translate(node.this), "struct"]
        if isinstance(node, exp.Struct):
            if not all(isinstance(field, exp.PropertyEQ) for field in node.expressions):
                raise refuse("a struct of values without names")
            return [self.translate(field.expression) for field in node.expressions]
        if isinstance(node, exp.Exists):
            self.query.translate(node.this, self.relations)
            return []
        if isinstance(node, exp.In):
            query = node.args.get("query")
            if node.args.get("unnest") or node.args.get("field"):
                raise refuse("IN of a column")
            others = [query] if query is not None else list(node.expressions)
            return [self.translate(node.this), *(self.translate(each) for each in others)]
        if isinstance(node, exp.Interval | exp.JSONPath | exp.DataType | exp.Star):
            return []
        plain = _operands_of(node)
        return [self.translate(each) for each in plain]

    def _column(self, column: exp.Column) -> str:
        if isinstance(column.this, exp.Star):
            raise refuse("a star within an expression")
        if not column.table:
            if column.name in self.result:
                return self.result[column.name]
            raise refuse(f"the column {column.name}")
        columns = self.relations.get(column.table)
        if columns is None or column.name not in columns:
            raise refuse(f"the column {column.sql(SPARK)}")
        return columns[column.name]

    def _window(self, node: exp.Window) -> str:
        _check(node)
        if isinstance(node.this, exp.Quantile | exp.Median):
            raise refuse("a percentile over a window")
        if node.args.get("alias") is not None:
            raise refuse("WINDOW")
        if (spec := node.args.get("spec")) is not None:
            _check(spec)
            _check_bounds(spec)
        for each in list(node.args.get("partition_by") or []):
            self.translate(each)
        if (order := node.args.get("order")) is not None:
            for ordered in order.expressions:
                self.ordered(ordered)
        return self._around(node, self.translate(node.this))

    def ordered(self, node: exp.Ordered) -> None:
        """Translate an ordering, which says where null stands."""
        _check(node)
        type_ = self.translate(node.this)
        if family(type_) in ("map", "struct", "array", "interval", "binary"):
            raise refuse(f"an order by {type_}")
        first = node.args.get("nulls_first")
        node.set("nulls_first", not node.args.get("desc") if first is None else first)

    def _around(self, node: exp.Expr, type_: str) -> str:
        """Return the type; a window's or a filter's sum is cast as a whole."""
        inside = node.this.this if isinstance(node.this, exp.Filter) else node.this
        outermost = not isinstance(node.parent, exp.Window)
        if isinstance(inside, exp.Sum) and family(type_) == "whole" and outermost:
            node.replace(cast(node.copy(), "BIGINT"))
        return type_

    def _sum(self, node: exp.Sum, type_: str) -> exp.Expr:
        """Return a sum as the BIGINT that Spark has, an error where it does not fit."""
        if family(type_) != "whole" or isinstance(node.parent, exp.Window | exp.Filter):
            return node
        return cast(node.copy(), "BIGINT")


def _check_explode(query: exp.Select) -> None:
    """Refuse explode beside another, and where rows are brought together."""
    columns = [each.unalias() for each in query.expressions]
    exploded = [each for each in columns if isinstance(each, exp.Explode)]
    together = query.args.get("group") or query.args.get("distinct") or query.args.get("having")
    aggregated = any(each.find(exp.AggFunc, exp.Window) for each in columns)
    if len(exploded) > 1 or (exploded and (together or aggregated)):
        raise refuse("explode of rows that are brought together")


def _check_grouped(type_: str, rounded: bool) -> None:
    """Refuse to bring rows together by nested values, and by doubles that may be -0.0, which Spark
    shows as 0.0; a rounded one never is."""
    if family(type_) in ("map", "struct", "array", "binary") or (type_ == "double" and not rounded):
        raise refuse(f"rows brought together by {type_}")


def _is_whole_column(node: exp.Expr) -> bool:
    """Return whether an expression is a whole column of a SELECT, under a name or without."""
    parent = node.parent.parent if isinstance(node.parent, exp.Alias) else node.parent
    return isinstance(parent, exp.Select)


def _operands_of(node: exp.Expr) -> list[exp.Expr]:
    """Return the operands of a function or operator, in their order: what is no option of it."""
    plain: list[exp.Expr] = []
    for name, value in node.args.items():
        if name in ("to", "unit", "format", "quantile", "decimals", "path"):
            continue
        values = value if isinstance(value, list) else [value]
        for each in values:
            if isinstance(each, exp.Distinct):
                plain.extend(each.expressions)
            elif isinstance(each, exp.Expr) and not isinstance(
                each, exp.Star | exp.JSONPath | exp.Identifier | exp.Var | exp.DataType
            ):
                plain.append(each)
    return plain


def _check(node: exp.Expr) -> None:
    """Refuse a clause with an option that is not known here."""
    for kind, allowed in _CLAUSES.items():
        if isinstance(node, kind):
            for name, value in node.args.items():
                if name not in allowed and value not in (None, False, []):
                    raise refuse(f"{node.key} with {name.rstrip('_')}")
            return
    raise refuse(node.key.upper())


def _check_bounds(spec: exp.WindowSpec) -> None:
    """Refuse a frame by lengths of time, and one whose bounds are no numbers."""
    for name in ("start", "end"):
        bound = spec.args.get(name)
        if isinstance(bound, exp.Literal) and re.fullmatch(r"\d+", bound.name):
            if str(spec.args.get("kind")).upper() != "ROWS":
                raise refuse("a frame by values")
        elif bound not in ("UNBOUNDED", "CURRENT ROW", None):
            raise refuse("a frame by values")
