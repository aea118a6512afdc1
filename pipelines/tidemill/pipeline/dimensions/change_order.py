"""Where a change stands in its source's order, as a text that sorts as that order does.

    <what the source counts by>/<rank>/<hash of the row>

    lsn      source.lsn                                             PostgreSQL
    binlog   source.file (its number), source.pos, source.row       MySQL, MariaDB
    time     source.ts_ms, source.txId, transaction.total_order     any
    version  _commit_version                                        a Delta change data feed

Only changes of one key are compared. Two of them at one place are one change that is told twice, or
the two halves of a change of keys: a delete ranks below a snapshot's read, that below the rest, and
last the greater hash wins. So the newest is the same in whatever order they arrive.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.config.dimension import Dimension

SEPARATOR = "/"


@dataclass(frozen=True)
class Count:
    """A number of the source by which changes are ordered: its path in the record, how many digits
    sort it, whether a record may be without it, and, where its value is a text that ends with the
    number, `in_text`."""

    path: str
    digits: int = 20
    optional: bool = False
    in_text: bool = False

    @property
    def number(self) -> str:
        """The number as SQL, null where it is none."""
        if self.in_text:
            text = f"try_variant_get(__envelope, '$.{self.path}', 'string')"
            return f"try_cast(regexp_extract({text}, '([0-9]{{1,18}})$', 1) AS BIGINT)"
        is_whole = f"schema_of_variant(try_variant_get(__envelope, '$.{self.path}', 'variant'))"
        value = f"try_variant_get(__envelope, '$.{self.path}', 'bigint')"
        return f"CASE WHEN {is_whole} IN ('BIGINT', 'DECIMAL(20,0)') THEN {value} END"

    @property
    def sortable(self) -> str:
        """The number with zeros before it."""
        number = f"coalesce({self.number}, 0)" if self.optional else self.number
        return f"lpad(CAST({number} AS STRING), {self.digits}, '0')"


_ORDERS = {
    "lsn": (Count("source.lsn"),),
    "binlog": (
        Count("source.file", in_text=True),
        Count("source.pos"),
        Count("source.row", 10, optional=True),
    ),
    "time": (
        Count("source.ts_ms"),
        Count("source.txId", optional=True),
        Count("transaction.total_order", optional=True),
    ),
}
_FEED = (Count("_commit_version"),)


def counts(dimension: Dimension) -> tuple[Count, ...]:
    """Return the numbers by which a dimension's changes are ordered, the most significant first."""
    return _FEED if dimension.format == "delta_feed" else _ORDERS[dimension.order]


def place(dimension: Dimension) -> str:
    """Return where the source counts a change, as SQL; null where a number is missing."""
    return f"concat_ws('-', {', '.join(count.sortable for count in counts(dimension))})"


def position(place: str, rank: str, values: str) -> str:
    """Return the position as SQL of its three parts; `values` are columns."""
    row_hash = f"lpad(hex(xxhash64({values})), 16, '0')"
    return f"concat_ws('{SEPARATOR}', {place}, CAST({rank} AS STRING), {row_hash})"


def place_of(position: str) -> str:
    """Return the place that a position names, as SQL: what tells a key's changes apart."""
    return f"substring_index({position}, '{SEPARATOR}', 1)"
