"""The one way to write with a ledger and a transaction: an append, an overwrite, a MERGE.

A transaction (application, number) that a table has seen is skipped in silence: a DataFrame's write
returns as usual, a MERGE returns no row. So whoever writes reads the ledger again afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidemill.lake.session.temporary_conf import temporary_conf

Transaction = tuple[str, int]

_TXN_APP = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def write(
    rows: DataFrame,
    table: str,
    ledger: Mapping[str, Any],
    transaction: Transaction | None = None,
    *,
    mode: str = "append",
    replaces_columns: bool = False,
    replaces_where: str | None = None,
) -> None:
    """Write rows to a table in one commit that carries a ledger and, where given, a transaction.

    `mode` is append or overwrite. With `replaces_columns` the table's columns are overwritten with
    those of the rows as well; with `replaces_where` only the rows that meet the condition are.
    """
    options = {"userMetadata": json.dumps(ledger)}
    if transaction:
        options |= {"txnAppId": transaction[0], "txnVersion": str(transaction[1])}
    if replaces_columns:
        options["overwriteSchema"] = "true"
    if replaces_where:
        options["replaceWhere"] = replaces_where
    overwrites = replaces_columns or replaces_where
    commit = rows.write.format("delta").mode("overwrite" if overwrites else mode)
    commit.options(**options).saveAsTable(table)


@contextmanager
def carrying(
    spark: SparkSession, ledger: Mapping[str, object], transaction: Transaction | None = None
) -> Iterator[None]:
    """Let the next statement of the session that writes carry a ledger, and a transaction; no later
    one: left set, they would swallow the next append."""
    settings = {_METADATA: json.dumps(ledger)}
    if transaction:
        settings |= {_TXN_APP: transaction[0], _TXN_VERSION: str(transaction[1])}
    with temporary_conf(spark, settings):
        yield
