"""How far the tables say that a query has come, in batches: a checkpoint may not say less.

A checkpoint that was rolled back (a backup, a lost disk cache) plans its batch ids again, with
other rows. Delta skips a batch id that bronze has, in silence; quarantine might take what events
refuse.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.lake.commits import ledger
from tidemill.lake.commits.ledger import RECENT, Commit, Reader

STREAMED = "STREAMING UPDATE"  # the operation of Spark's own Delta sink


def newest_epoch(reader: Reader, table: str, query_id: str) -> int:
    """Return the newest batch that Spark's own Delta sink wrote for the query, -1 for none."""
    commits = reader.commits(table)
    epochs = _epochs(commits, query_id)
    if not epochs and len(commits) == RECENT:
        epochs = _epochs(reader.commits(table, None), query_id)
    return max(epochs, default=-1)


def _epochs(commits: Iterable[Commit], query_id: str) -> list[int]:
    streamed = (c.parameters for c in commits if c.operation == STREAMED)
    return [int(said["epochId"]) for said in streamed if said.get("queryId") == query_id]


def newest_batch(reader: Reader, tables: Iterable[str], generation: str) -> int:
    """Return the newest batch that the tables' appends of a generation name, -1 for none."""
    commits = (ledger.newest_append(reader, table, generation) for table in tables)
    return max((int(c.ledger["batch"]) for c in commits if c and c.ledger), default=-1)
