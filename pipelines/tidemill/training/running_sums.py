"""Sums over windows as differences of running sums, in Arrow, some keys at a time.

    rows of some keys   buckets, what each adds ──order by (key, time)──► running sums
                        edges ──as-of search of each window's two ends──► sum at end - sum at start

The running sums go on from key to key: a key's own are differences, and what came before cancels.
They are kept in limbs of 32 bits, so none is too long, and a window's sum is exact; one that its
type cannot hold is null, as a recompute has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

_BITS = 32
_MASK = 2**_BITS - 1
_KEY = 34  # bits of a time in seconds, below the key's number
# Of a row with `__key`, the number of its key, `__moment`, seconds since 1970, and `__is_edge`; in
# one column, as what a row costs on its way to Python are its columns.
PLACE = f"shiftleft(__key, {_KEY + 1}) + __moment * 2 + CAST(__is_edge AS INT)"
KEY_OF_PLACE = f"shiftright(__place, {_KEY + 1})"
_ROWS = 65_536


@dataclass(frozen=True)
class WindowSum:
    """A sum to compute: of a column, over the window that begins and ends so many seconds before an
    edge, or begins at the second that a column of the edge tells; `digits` and `scale` are those of
    its decimal type, None of a BIGINT."""

    name: str
    column: str
    start: int | str
    end: int
    digits: int | None = None
    scale: int = 0

    @property
    def type(self) -> str:
        """The SQL type of the sum."""
        return f"DECIMAL({self.digits}, {self.scale})" if self.digits else "BIGINT"


def sums(batches: Iterable[pa.RecordBatch], wanted: Sequence[WindowSum]) -> Iterator[Any]:
    """Yield, of the rows of some keys, each edge with its sums.

    A row has its place, as `PLACE` makes it; a bucket's row the columns to add up, of which null
    adds nothing.
    """
    import numpy as np

    received = list(batches)
    rows = pa.Table.from_batches(received) if received else pa.table({})
    if not rows.num_rows:
        return
    packed = rows["__place"].to_numpy()
    is_edge = (packed & 1).astype(bool)
    if not is_edge.any():
        return
    place = packed >> 1
    order = np.argsort(place[~is_edge], kind="stable")
    buckets = place[~is_edge][order]
    edge_order = np.argsort(place[is_edge], kind="stable")
    edges = place[is_edge][edge_order]
    at = {}
    for side in {side for one in wanted for side in (one.start, one.end)}:
        seconds = edges - side if isinstance(side, int) else edges >> _KEY << _KEY
        if isinstance(side, str):
            told = rows[side].filter(pa.array(is_edge)).to_numpy()
            seconds = seconds + told[edge_order]
        at[side] = np.searchsorted(buckets, seconds, side="left")
    running: dict[str, list[Any]] = {}
    for one in wanted:
        if one.column not in running:
            values = rows[one.column].filter(pa.array(~is_edge)).combine_chunks()
            running[one.column] = [_running(limb[order]) for limb in _limbs(values)]
    found = {"__key": edges >> _KEY, "__moment": edges & (2**_KEY - 1)}
    for one in wanted:
        limbs = [run[at[one.end]] - run[at[one.start]] for run in running[one.column]]
        found[one.name] = _whole(limbs) if one.digits is None else _decimal(limbs, one)
    yield from pa.table(found).to_batches(max_chunksize=_ROWS)


def _running(values: Any) -> Any:
    """Return the sums of the values before each place, and of all."""
    import numpy as np

    return np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])


def _limbs(values: Any) -> list[Any]:
    """Return the values' limbs of 32 bits, the lowest first; the highest has the sign."""
    import numpy as np

    present = values.is_valid().to_numpy(zero_copy_only=False)
    width = 2 if pa.types.is_decimal(values.type) else 1
    first, count = values.offset * width, len(values) * width
    buffer = values.buffers()[1] if count else b""
    words = np.frombuffer(buffer, dtype=np.int64)[first : first + count]
    limbs = []
    for place in range(width):
        word = np.where(present, words[place::width], 0)
        limbs += [word & _MASK, word >> _BITS if place == width - 1 else (word >> _BITS) & _MASK]
    return limbs


def _carried(limbs: list[Any]) -> list[Any]:
    """Return the limbs of a sum with their carries passed on: all but the highest are 32 bits."""
    carry, carried = 0, []
    for limb in limbs[:-1]:
        total = limb + carry
        carried.append(total & _MASK)
        carry = total >> _BITS
    return [*carried, limbs[-1] + carry]


def _whole(limbs: list[Any]) -> pa.Array:
    """Return a BIGINT of its two limbs, null where it does not fit."""
    low, high = _carried(limbs)
    return pa.array((high << _BITS) | low, mask=(high < -(2**31)) | (high >= 2**31))


def _decimal(limbs: list[Any], one: WindowSum) -> pa.Array:
    """Return a decimal of its four limbs, null where it has too many digits."""
    import numpy as np

    assert one.digits is not None
    first, second, third, highest = _carried(limbs)
    most = 10**one.digits - 1
    broken = (highest < -(2**31)) | (highest >= 2**31)
    top = most >> 3 * _BITS
    for place in np.flatnonzero(~broken & ((highest >= top) | (highest <= -top))):
        exact = sum(
            int(x[place]) << n * _BITS for n, x in enumerate((first, second, third, highest))
        )
        broken[place] = abs(exact) > most
    words = np.empty(2 * len(first), np.int64)
    words[0::2] = (second << _BITS) | first
    words[1::2] = (highest << _BITS) | third
    valid = pa.array(~broken).buffers()[1]
    type_ = pa.decimal128(one.digits, one.scale)
    return pa.Array.from_buffers(type_, len(first), [valid, pa.py_buffer(words.tobytes())])
