"""What events take of dimensions, and how a dimension follows from its changes, as tables say it.

    <pipeline>_events       tidemill.enriched    {column: [dimension, attribute, {column: its key}]}
    <dimension>_dimension   tidemill.dimension   {keys, format, order, history}

`clean` looks an event up once, and what it took stays. So a column that is declared to be another
attribute, of other keys, or that is new, holds for the past what was taken then, or nothing: only
`rebuild --from bronze` looks all events up again. A table without rows takes what is declared, and
so does one of a version that did not say it, as far as its columns go.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.schema.table_properties import GENERATION, OWNER, tell
from tidemill.lake.tables import ENRICHED, FOLLOWS, Table


def difference(lake: Lake) -> str:
    """Return, in words, a column that events took otherwise than is declared, or a dimension that
    followed otherwise from its changes; empty for none."""
    for table, key in _saying(lake):
        before, declared = _said(lake, table, key), json.loads(table.properties[key])
        for name in dict.fromkeys((*declared, *before)):
            if before.get(name) != declared.get(name):
                what = f"{name} of {table.name} was {_words(before.get(name))}"
                return f"{what}, declared {_words(declared.get(name))}"
    return ""


def settle(lake: Lake, absent: Collection[str]) -> None:
    """Have the pipeline's tables that have no rows yet, or do not say it, say how their rows are
    made; those that are `absent` will."""
    for table, key in _saying(lake):
        if table.name in absent:
            continue
        said, declared = lake.metadata(table.name).properties, table.properties[key]
        if said.get(OWNER) != lake.pipeline.pipeline or said.get(key) == declared:
            continue
        told = declared if _is_empty(lake, table) else json.dumps(_said(lake, table, key))
        if told != said.get(key, "{}"):
            tell(lake.spark, table.name, {key: told})


def _saying(lake: Lake) -> Iterator[tuple[Table, str]]:
    yield lake.tables.events, ENRICHED
    for dimension in lake.tables.dimensions.values():
        yield dimension.rows, FOLLOWS


def _said(lake: Lake, table: Table, key: str) -> Mapping[str, Any]:
    """Return what a table says; of one that does not, what is declared of the columns it has."""
    stands = lake.metadata(table.name)
    if key in stands.properties:
        said: Mapping[str, Any] = json.loads(stands.properties[key])
        return said
    declared: Mapping[str, Any] = json.loads(table.properties[key])
    if key == FOLLOWS:
        return declared
    return {column: taken for column, taken in declared.items() if column in stands.types}


def _is_empty(lake: Lake, table: Table) -> bool:
    generation = lake.metadata(table.name).properties.get(GENERATION, "")
    return ledger.newest_append(lake, table.name, generation) is None


def _words(said: Any) -> str:
    return "nothing" if said is None else json.dumps(said).replace('"', "")
