"""What a piece of work costs Spark, as counts that do not depend on the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

RECENT = 200


@dataclass(frozen=True)
class Counts:
    """Jobs; statements that ran one, those that Delta runs for itself included; pieces of code
    that were compiled; and how often the rows of each table were scanned."""

    jobs: int
    statements: int
    compiled: int
    scans: dict[str, int]


def counted(spark: SparkSession, work: Callable[[], object]) -> Counts:
    """Do the work, and count what Spark did for it."""
    context: Any = spark.sparkContext
    store: Any = spark._jsparkSession.sharedState().statusStore()
    before, classes = (
        max((each.executionId() for each in _newest(store)), default=-1),
        compiled(spark),
    )
    context.setJobGroup("counted", "counted")
    try:
        work()
    finally:
        context.setJobGroup("rest", "rest")
    context._jsc.sc().listenerBus().waitUntilEmpty()
    ran = [e for e in _newest(store) if e.executionId() > before and e.jobs().size()]
    return Counts(
        jobs=len(context.statusTracker().getJobIdsForGroup("counted")),
        statements=len(ran),
        compiled=compiled(spark) - classes,
        scans=_scans(store, [each.executionId() for each in ran]),
    )


def compiled(spark: SparkSession) -> int:
    """How many pieces of code Spark has compiled; one of whole stages counts twice in a local
    session, whose driver and executor load classes apart."""
    metrics: Any = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics
    return int(metrics.METRIC_COMPILATION_TIME().getCount())


def _newest(store: Any) -> list[Any]:
    """Return the newest statements; Spark keeps a thousand, so their number says nothing."""
    found = store.executionsList(max(0, store.executionsCount() - RECENT), RECENT)
    return [found.apply(number) for number in range(found.size())]


def _scans(store: Any, executions: list[int]) -> dict[str, int]:
    """How often a scan yielded rows of each table; one whose rows are kept yields them once."""
    found: dict[str, int] = {}
    for execution in executions:
        values, nodes = store.executionMetrics(execution), store.planGraph(execution).allNodes()
        for node in map(nodes.apply, range(nodes.size())):
            if not node.name().startswith("Scan parquet ") or not _yields(node, values):
                continue
            table = node.name().rpartition(".")[2]
            found[table] = found.get(table, 0) + 1
    return found


def _yields(node: Any, values: Any) -> bool:
    metrics = map(node.metrics().apply, range(node.metrics().size()))
    rows = [m.accumulatorId() for m in metrics if m.name() == "number of output rows"]
    return any(values.contains(one) for one in rows)
