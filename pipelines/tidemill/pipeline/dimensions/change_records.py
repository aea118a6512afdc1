"""A record of a dimension's source as a change of a key, or refused with every reason.

    raw_payload ──► __envelope ──► op, the row before, the row after ──► changes

    debezium     op c, r, u: the row is `after`; d: its keys are those of `before`; a record that
                 holds nothing is the tombstone behind a delete, and says nothing new
    delta_feed   insert and update_postimage bring a row, delete and update_preimage remove its key

An update of which `before` has other keys deletes those too: a change of keys is a delete and an
insert, however a source tells it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from tidemill.config.dimension import Dimension
from tidemill.pipeline.dimensions import change_order
from tidemill.pipeline.silver.validation.predicates import broken
from tidemill.pipeline.silver.validation.record import Field, value, whole_record, with_fields
from tidemill.pipeline.silver.validation.rules import Range, Rule

_OBJECT = "startswith({kind}, 'OBJECT<')"


@dataclass(frozen=True)
class Format:
    """How a record tells a change, as SQL over `__envelope`, the record as a variant.

    `op` is the name of what was done; `writes` and `deletes` are those of a row that is there
    afterwards and of one that is not; `after` and `before` hold the rows; `changed_at` is the
    source's time, found at the path `time`.
    """

    op: str
    writes: tuple[str, ...]
    deletes: tuple[str, ...]
    after: str
    before: str
    changed_at: str
    time: str
    row: tuple[str, str]

    @property
    def is_delete(self) -> str:
        """Whether the change deletes the key."""
        return f"__op IN ({_listed(self.deletes)})"


_MILLIS = (
    "coalesce(try_variant_get(__envelope, '$.source.ts_ms', 'bigint'), "
    "try_variant_get(__envelope, '$.ts_ms', 'bigint'))"
)
FORMATS = {
    "debezium": Format(
        op="op",
        writes=("r", "c", "u"),
        deletes=("d",),
        after="try_variant_get(__envelope, '$.after', 'variant')",
        before="try_variant_get(__envelope, '$.before', 'variant')",
        changed_at=f"timestamp_millis({_MILLIS})",
        time="source.ts_ms",
        row=("before", "after"),
    ),
    "delta_feed": Format(
        op="_change_type",
        writes=("insert", "update_postimage"),
        deletes=("delete", "update_preimage"),
        after="__envelope",
        before="__envelope",
        changed_at="try_cast(try_variant_get(__envelope, '$._commit_timestamp', 'string') "
        "AS TIMESTAMP)",
        time="_commit_timestamp",
        row=("row", "row"),
    ),
}


def judge(bronze: DataFrame, dimension: Dimension) -> DataFrame:
    """Return bronze's columns with what a change is made of (see `changes`), `reasons`, sorted, and
    `tombstone`, whether a record holds nothing."""
    form = FORMATS[dimension.format]
    rows = bronze.selectExpr("*", f"{whole_record()} AS __record")
    rows = rows.selectExpr("*", f"{_envelope(dimension)} AS __envelope", f"{_empty()} AS tombstone")
    rows = rows.selectExpr(
        "*",
        "schema_of_variant(__envelope) AS __kind",
        f"try_variant_get(__envelope, '$.{form.op}', 'string') AS __op",
        f"{form.before} AS __before",
        f"{form.changed_at} AS changed_at",
        f"{change_order.place(dimension)} AS __place",
    )
    image = f"CASE WHEN {form.is_delete} THEN __before ELSE {form.after} END AS __image"
    rows = rows.selectExpr("*", image, f"{form.is_delete} AS deleted")
    rows = rows.selectExpr("*", "schema_of_variant(__image) AS __row_kind")
    rows = with_fields(rows, fields(dimension), "__image", "$")
    cases = ", ".join(f"CASE WHEN {sql} THEN '{why}' END" for why, sql in _reasons(dimension))
    reasons = f"sort_array(array_except(array({cases}), array(CAST(NULL AS STRING))))"
    none = "CAST(array() AS ARRAY<STRING>)"
    return rows.selectExpr(
        *bronze.columns,
        "tombstone",
        *(f"{_value(field, dimension)} AS {field.name}" for field in fields(dimension)),
        *(f"{_key_before(field)} AS __before_{field.name}" for field in _keys(dimension)),
        "deleted",
        "changed_at",
        "__place",
        "__op",
        f"CASE WHEN tombstone THEN {none} ELSE {reasons} END AS reasons",
    )


def changes(judged: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the changes of records that are not refused: keys, attributes, deleted, changed_at and
    position; a record that changes a row's keys makes two."""
    rows = judged.where("size(reasons) = 0 AND NOT tombstone")
    keys, attributes = list(dimension.keys), dimension.attributes
    moved = " OR ".join(f"__before_{key} IS DISTINCT FROM {key}" for key in keys)
    known = " AND ".join(f"__before_{key} IS NOT NULL" for key in keys)
    left = rows.where(f"NOT deleted AND {known} AND ({moved})").selectExpr(
        *(f"__before_{key} AS {key}" for key in keys),
        *(f"CAST(NULL AS {dimension.type_of(name)}) AS {name}" for name in attributes),
        "TRUE AS deleted",
        "changed_at",
        "__place",
        "__op",
    )
    each = rows.select(*keys, *attributes, "deleted", "changed_at", "__place", "__op")
    rank = "CASE WHEN deleted THEN 0 WHEN __op = 'r' THEN 1 ELSE 2 END"
    position = change_order.position("__place", rank, ", ".join(["deleted", *attributes]))
    return each.unionByName(left).selectExpr(
        *keys, *attributes, "deleted", "changed_at", f"{position} AS position"
    )


def _envelope(dimension: Dimension) -> str:
    """Return the record itself; of a Debezium record that brings its schema, its payload."""
    record = "variant_get(__record, '$.r', 'variant')"
    if dimension.format == "delta_feed":
        return record
    payload = "try_variant_get(__record, '$.r.payload', 'variant')"
    is_object = _OBJECT.format(kind=f"schema_of_variant({payload})")
    return f"CASE WHEN {is_object} THEN {payload} ELSE {record} END"


def _empty() -> str:
    """Return whether a record is a tombstone: without a value, or `null`, with a schema or not."""
    nothing = "schema_of_variant(try_variant_get(__record, '$.r{path}', 'variant')) = 'VOID'"
    said = (nothing.format(path=path) for path in ("", ".payload"))
    return f"raw_payload IS NULL OR coalesce({' OR '.join(said)}, FALSE)"


def fields(dimension: Dimension) -> list[Field]:
    """Return the fields of a row: keys and attributes."""
    return [
        Field(name, type_.rstrip("?"), not type_.endswith("?"))
        for name, type_ in dimension.column_types.items()
    ]


def _keys(dimension: Dimension) -> list[Field]:
    return [field for field in fields(dimension) if field.name in dimension.keys]


def _value(field: Field, dimension: Dimension) -> str:
    """Return a field of the row; an attribute of a deleted one is null."""
    return value(field) if field.name in dimension.keys else f"IF(deleted, NULL, {value(field)})"


def _key_before(field: Field) -> str:
    return f"try_variant_get(__before, '$.{field.name}', '{field.type}')"


def _reasons(dimension: Dimension) -> list[tuple[str, str]]:
    """Return each reason with the condition, over a record, of being refused for it."""
    form = FORMATS[dimension.format]
    is_object = f"coalesce({_OBJECT.format(kind='__kind')}, FALSE)"
    known = f"__op IN ({_listed((*form.writes, *form.deletes))})"
    reasons = [
        ("malformed", "__record IS NULL"),
        ("not_an_object", f"__record IS NOT NULL AND NOT {is_object}"),
        (f"missing:{form.op}", f"{is_object} AND __op IS NULL"),
        (f"unknown_value:{form.op}", f"NOT {known}"),
        (f"missing:{form.time}", f"{is_object} AND changed_at IS NULL"),
    ]
    for count in change_order.counts(dimension):
        if not count.optional and count.path != form.time:
            reasons.append((f"missing:{count.path}", f"{is_object} AND {count.number} IS NULL"))
    for row, deletes in zip(form.row, (True, False), strict=True):
        if dimension.format == "debezium":
            mine = f"{known} AND {'' if deletes else 'NOT '}deleted"
            absent = f"coalesce(NOT {_OBJECT.format(kind='__row_kind')}, TRUE)"
            reasons.append((f"missing:{row}", f"{mine} AND {absent}"))
    has_row = f"{known} AND {_OBJECT.format(kind='__row_kind')}"
    for field in fields(dimension):
        mine = has_row if field.name in dimension.keys else f"{has_row} AND NOT deleted"
        for reason, sql in _of_field(field):
            reasons.append((reason, f"{mine} AND {sql}"))
    return reasons


def _of_field(field: Field) -> list[tuple[str, str]]:
    wrong = Rule("wrong_type", field, types=field.types)
    rules = [(wrong.reason, broken(wrong))]
    if field.required:
        rules.append((f"missing:{field.name}", field.is_missing))
    if field.type not in ("string", "boolean"):
        outside = Rule("out_of_range", field, types=field.types, range=Range())
        rules.append((outside.reason, broken(outside)))
    return rules


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
