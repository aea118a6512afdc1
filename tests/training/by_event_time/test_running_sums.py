"""Sums over windows from running sums, beside sums that Python adds up one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa
import pytest

from tidemill.training.by_event_time.running_sums import WindowSum, sums

HUGE = 2**63 - 1
Bucket = tuple[int, int, Any]  # key, moment, what it adds


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    """Python's own decimals round to 28 digits by default."""
    with localcontext() as context:
        context.prec = 80
        yield


def computed(
    buckets: Sequence[Bucket], edges: Sequence[tuple[int, int]], one: WindowSum, chunks: int = 1
) -> dict[tuple[int, int], Any]:
    """The sums at the edges, of rows that come in any order and in several batches."""
    type_ = pa.decimal128(one.digits, one.scale) if one.digits else pa.int64()
    rows = [*((k, m, False, v) for k, m, v in buckets), *((k, m, True, None) for k, m in edges)]
    random.Random(3).shuffle(rows)
    keys, moments, is_edge, values = zip(*rows, strict=True)
    table = pa.table(
        {
            "__place": pa.array(map(place, keys, moments, is_edge), pa.int64()),
            one.column: pa.array(values, type_),
        }
    )
    found = pa.Table.from_batches(sums(table.to_batches(-(-len(rows) // chunks)), [one]))
    columns = (found[name].to_pylist() for name in ("__key", "__moment", one.name))
    return {(key, moment): value for key, moment, value in zip(*columns, strict=True)}


def place(key: int, moment: int, is_edge: bool) -> int:
    """As `PLACE` says it to Spark."""
    return (key << 35) + moment * 2 + is_edge


def brute(buckets: Sequence[Bucket], edge: tuple[int, int], one: WindowSum, limit: int) -> Any:
    key, moment = edge
    start, end = moment - one.start, moment - one.end
    inside = [v for k, m, v in buckets if k == key and start <= m < end and v is not None]
    total = sum(inside, Decimal(0) if one.digits else 0)
    return total if -limit - (not one.digits) <= int(total * 10**one.scale) <= limit else None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("digits", "scale"), [(None, 0), (38, 0), (38, 2), (20, 2)])
def test_they_are_what_python_adds_up(seed: int, digits: int | None, scale: int) -> None:
    """Small values, and values at the ends of the type, of which some sums do not fit."""
    drawn = random.Random(seed)
    limit = 10**digits - 1 if digits else HUGE
    values = [*range(-3, 9), limit, -limit, limit // 2, limit - 5, None]

    def value() -> Any:
        number = drawn.choice(values)
        return number if number is None or not digits else Decimal(number).scaleb(-scale)

    buckets = [
        (drawn.randrange(1, 4), 1_000_000 + 60 * drawn.randrange(40), value()) for _ in range(60)
    ]
    edges = list({(drawn.randrange(1, 6), 1_000_000 + 60 * drawn.randrange(45)) for _ in range(50)})
    for start, end in ((600, 0), (60, 0), (1200, 300), (900_000, 0)):
        one = WindowSum("s", "v", start, end, digits, scale)
        found = computed(buckets, edges, one, drawn.choice([1, 3]))
        assert found == {edge: brute(buckets, edge, one, limit) for edge in edges}


def test_a_bucket_that_starts_at_the_edge_is_not_in_it() -> None:
    """
    1000      1060 = edge
     1 ▪ ──────┤ 2 ▪
    """
    one = WindowSum("s", "v", 60, 0)
    buckets = [(1, 999, 8), (1, 1000, 1), (1, 1060, 2), (2, 1000, 4)]
    assert computed(buckets, [(1, 1060)], one) == {(1, 1060): 1}


def test_keys_without_buckets_and_no_rows_at_all() -> None:
    one = WindowSum("s", "v", 60, 0)
    assert computed([], [(1, 1060)], one) == {(1, 1060): 0}
    assert list(sums([], [one])) == []
    empty = pa.table({"__place": pa.array([], pa.int64())})
    assert list(sums(empty.to_batches(), [one])) == []
