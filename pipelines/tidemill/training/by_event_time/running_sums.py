"""Sums over windows as differences of running sums, in Arrow.

    buckets, what each adds ──order by (key, time)──► running sums
    edges ──as-of search of each window's two ends──► sum at end - sum at start

The running sums go on from key to key: a key's own are differences, and what came before cancels.
Where one may be too long they are kept in limbs of 32 bits, so a window's sum is exact; one that
its type cannot hold is null, as a recompute has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

_BITS = 32
_MASK = 2**_BITS - 1
_SURELY_WHOLE = 2.0**62  # of absolute values as doubles, whose sum is off by far less
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


@dataclass(frozen=True)
class RunningSums:
    """What the columns of bucket rows add up to before each row, in the order of (key, time), and
    behind the last one.

    `places` are the rows' keys and times in one number, as `place` makes it; a row of `running` has
    the limbs of all sums side by side, those of a column at `limbs[name]`.
    """

    places: Any
    running: Any
    limbs: Mapping[str, slice]

    @classmethod
    def of(cls, places: Any, columns: Mapping[str, pa.Array]) -> RunningSums:
        """Return the sums of bucket rows at these places, which may come in any order; a null adds
        nothing."""
        import numpy as np

        order = np.argsort(places)
        added: list[Any] = []
        limbs = {}
        for name, values in columns.items():
            of_column = _limbs(values)
            limbs[name] = slice(len(added), len(added) + len(of_column))
            added += of_column
        running = np.zeros((len(places) + 1, len(added)), np.int64)
        for number, limb in enumerate(added):
            np.cumsum(limb[order], out=running[1:, number])
        return cls(places[order], running, limbs)

    def over(
        self, edges: Any, wanted: Sequence[WindowSum], starts: Mapping[str, Any]
    ) -> dict[str, pa.Array]:
        """Return each sum wanted at edges, which are places too and quicker found in order;
        `starts` are the seconds at which windows start that the edges tell."""
        import numpy as np

        before = {}
        for side in {side for one in wanted for side in (one.start, one.end)}:
            if isinstance(side, int):
                ends = edges - side
            else:
                ends = (edges >> _KEY << _KEY) + starts[side]
            before[side] = self.running[np.searchsorted(self.places, ends, side="left")]
        found = {}
        for one in wanted:
            limbs = self.limbs[one.column]
            over = before[one.end][:, limbs] - before[one.start][:, limbs]
            found[one.name] = _decimal([*over.T], one) if one.digits else _whole([*over.T])
        return found


def place(keys: Any, moments: Any) -> Any:
    """Return the numbers of keys and times, in seconds since 1970, in one, as sums are sorted."""
    return (keys << _KEY) + moments


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
    places = packed >> 1
    columns = {one.column for one in wanted}
    of_edges, of_buckets = pa.array(is_edge), pa.array(~is_edge)
    added = {name: rows[name].filter(of_buckets).combine_chunks() for name in columns}
    order = np.argsort(places[is_edge], kind="stable")
    edges = places[is_edge][order]
    told = {one.start for one in wanted if isinstance(one.start, str)}
    starts = {name: rows[name].filter(of_edges).to_numpy()[order] for name in told}
    found = RunningSums.of(places[~is_edge], added).over(edges, wanted, starts)
    of_edge = {"__key": edges >> _KEY, "__moment": edges & (2**_KEY - 1)}
    yield from pa.table({**of_edge, **found}).to_batches(max_chunksize=_ROWS)


def _limbs(values: pa.Array) -> list[Any]:
    """Return the values' limbs, the lowest first, of 32 bits and the highest with the sign; a
    single one of whole numbers whose sums cannot be too long."""
    import numpy as np

    present = values.is_valid().to_numpy(zero_copy_only=False)
    width = 2 if pa.types.is_decimal(values.type) else 1
    first, count = values.offset * width, len(values) * width
    buffer = values.buffers()[1] if count else b""
    words = np.frombuffer(buffer, dtype=np.int64)[first : first + count]
    parts = [np.where(present, words[number::width], 0) for number in range(width)]
    if width == 1 and np.abs(parts[0].astype(np.float64)).sum() < _SURELY_WHOLE:
        return parts
    limbs = []
    for number, word in enumerate(parts):
        limbs += [word & _MASK, word >> _BITS if number == width - 1 else (word >> _BITS) & _MASK]
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
    """Return a BIGINT of its limb, or of its two limbs: null where it does not fit."""
    if len(limbs) == 1:
        return pa.array(limbs[0])
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
    for row in np.flatnonzero(~broken & ((highest >= top) | (highest <= -top))):
        exact = sum(int(x[row]) << n * _BITS for n, x in enumerate((first, second, third, highest)))
        broken[row] = abs(exact) > most
    words = np.empty(2 * len(first), np.int64)
    words[0::2] = (second << _BITS) | first
    words[1::2] = (highest << _BITS) | third
    valid = pa.array(~broken).buffers()[1]
    type_ = pa.decimal128(one.digits, one.scale)
    return pa.Array.from_buffers(type_, len(first), [valid, pa.py_buffer(words.tobytes())])
