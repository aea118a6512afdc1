"""A view's features in the rows that want them, from running sums that the driver makes once.

    bucket files ──Arrow──► running sums ──broadcast──► looked up for each row, where the row is

To look a window up takes less than to bring its bucket rows through a shuffle into Python, and the
spine's rows need no join. So it is done where the bucket rows fit the driver: of a folder, whose
files it reads itself, and of a view whose terms all add up. A value is the one of `event_values`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.features import FeatureView
from tidemill.features.columns import Term
from tidemill.features.windows.lengths import HOUR
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import change_feed, data_files
from tidemill.lake.statements import spine_terms
from tidemill.pipeline.silver import minute_buckets
from tidemill.training.by_event_time import event_values
from tidemill.training.by_event_time.running_sums import RunningSums, WindowSum, place

if TYPE_CHECKING:
    from pyspark import Broadcast  # which an installation for Spark Connect alone has not

# Numbers of 8 bytes that are sent to every task, and keys that are joined.
MOST_NUMBERS, MOST_KEYS = 40_000_000, 200_000
_NUMBER, _EDGE, _SUMS = "__key", "__edge", "__sums"


@dataclass(frozen=True)
class GatheredSums:
    """The running sums of a view's buckets, and the keys that they are of, each with a number."""

    view: FeatureView
    keys: DataFrame
    sums: Broadcast[RunningSums]

    def with_values(self, rows: DataFrame, edge: str, names: Mapping[str, str]) -> DataFrame:
        """Return the rows with the view's features, by their names in `names`, at the time in
        column `edge`, in microseconds since 1970; null where that is null."""
        keys = F.broadcast(self.keys)
        placed = rows.join(keys, [*self.view.keys], "left").withColumns(
            {_EDGE: F.coalesce(F.expr(f"`{edge}` DIV 1000000"), F.lit(0))}
        )
        found = placed.withColumn(_SUMS, self._looked_up()).select("*", f"{_SUMS}.*")
        values = {
            names[column.name]: F.when(
                F.col(edge).isNotNull(), F.expr(spine_terms.value_of(column))
            ).cast(column.type)
            for column in self.view.shown
        }
        kept = [F.col(f"`{name}`") for name in rows.columns]
        return found.withColumns(values).select(*kept, *values)

    def _looked_up(self) -> Column:
        """Return the terms at a row's edge; of a key without buckets the sums of nothing."""
        terms = spine_terms.needed(self.view)
        wanted = [event_values.window_sum(term) for term in terms]
        starts = _starts(terms)
        sums = self.sums

        def looked_up(keys: pa.Array, edges: pa.Array, *told: pa.Array) -> pa.Array:
            return _sums(sums.value, wanted, keys, edges, dict(zip(starts, told, strict=True)))

        schema = ", ".join(f"{one.name}: {one.type}" for one in wanted)
        struct = f"struct<{schema}>"
        look_up = F.arrow_udf(looked_up, struct)  # type: ignore[attr-defined] # no stub has it
        key = F.coalesce(F.col(_NUMBER), F.lit(-1).cast("bigint"))
        found: Column = look_up(key, F.col(_EDGE), *map(F.expr, starts.values()))
        return found


def gathered(lake: Lake, view: FeatureView, first: datetime, last: datetime) -> GatheredSums | None:
    """Return the sums of the buckets that windows reach whose ends are from `first` to `last`, at
    the table's newest version; None where Spark has to bring their rows together."""
    terms = spine_terms.needed(view)
    if lake.driver_folder is None or not all(map(spine_terms.adds_up, terms)):
        return None
    columns = [*dict.fromkeys(term.partial.name for term in terms)]
    rows = _bucket_rows(lake, view, columns, first, last)
    if rows is None:
        return None
    keys, numbers = _numbered(rows.select([*view.keys]))
    if keys.num_rows > MOST_KEYS:
        return None
    moments = rows["bucket_start"].cast(pa.timestamp("s", "UTC")).cast(pa.int64()).to_numpy()
    added = {name: rows[name].combine_chunks() for name in columns}
    sums = RunningSums.of(place(numbers, moments), added)
    named = lake.spark.createDataFrame(keys)
    typed = {key: F.col(key).cast(view.types[key]) for key in view.keys}
    return GatheredSums(view, named.withColumns(typed), lake.spark.sparkContext.broadcast(sums))


def _bucket_rows(
    lake: Lake, view: FeatureView, columns: Sequence[str], first: datetime, last: datetime
) -> pa.Table | None:
    """Return the bucket rows that windows may hold; None for too many, and for a table that asks
    more of its readers than its files."""
    from deltalake import DeltaTable
    from pyarrow.dataset import ParquetReadOptions, field

    bucketed, name = minute_buckets.bucketed(lake, view), lake.tables.of(view).buckets.name
    assert lake.place.folder is not None
    folder = lake.place.folder / name
    table = DeltaTable(str(folder), version=bucketed.commits[0].version)
    if change_feed.beyond_files(table):
        return None
    # Texts as they mostly lie in the file, by number: they are numbered anyway.
    texts = {key for key in view.keys if view.types[key] == "STRING"}
    read = ParquetReadOptions(dictionary_columns=texts)
    buckets = data_files.rows(table, folder, parquet_read_options=read)
    start = first - view.horizon
    hours = (field("bucket_hour") > start - HOUR) & (field("bucket_hour") < last)
    rows = sum(part.count_rows() for part in buckets.get_fragments(hours))
    if rows * (1 + len(columns)) > MOST_NUMBERS:
        return None
    inside = (field("bucket_start") >= start) & (field("bucket_start") < last)
    known = field("batch") <= bucketed.batch
    wanted = [*view.keys, "bucket_start", *columns]
    return buckets.to_table(wanted, filter=hours & inside & known)


def _numbered(rows: pa.Table) -> tuple[pa.Table, Any]:
    """Return the distinct keys of rows, each with its number, and the number of each row's."""
    import numpy as np

    numbers, many = np.zeros(rows.num_rows, np.int64), 1
    for name in rows.column_names:
        key = rows[name].combine_chunks()
        key = key if pa.types.is_dictionary(key.type) else key.dictionary_encode()
        together = numbers * len(key.dictionary) + key.indices.to_numpy()
        if many > 1 and len(key.dictionary) > 1:
            encoded = pa.array(together).dictionary_encode()
            together, many = encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
        else:
            many *= len(key.dictionary)
        numbers = together
    firsts = np.full(many, -1)
    firsts[numbers[::-1]] = np.arange(rows.num_rows)[::-1]
    there = np.flatnonzero(firsts >= 0)  # a dictionary may have what no row has
    keys = rows.take(firsts[there])
    return keys.append_column(_NUMBER, pa.array(there)), numbers


def _starts(terms: Sequence[Term]) -> dict[str, str]:
    """Return by name the SQL of the second at which each window starts that has a period."""
    windows = dict.fromkeys(term.window for term in terms if term.window.period)
    return {spine_terms.start_name(w): spine_terms.start_of(w) for w in windows}


def _sums(
    sums: RunningSums,
    wanted: Sequence[WindowSum],
    keys: pa.Array,
    edges: pa.Array,
    starts: Mapping[str, pa.Array],
) -> pa.Array:
    """Return the sums at edges of keys; they are looked up in order, in which they are near."""
    import numpy as np

    places = place(keys.to_numpy(), edges.to_numpy())
    order = np.argsort(places)
    told = {name: start.to_numpy(zero_copy_only=False)[order] for name, start in starts.items()}
    found = sums.over(places[order], wanted, told)
    given = np.empty_like(order)
    given[order] = np.arange(len(order))
    return pa.StructArray.from_arrays([*found.values()], [*found]).take(pa.array(given))
