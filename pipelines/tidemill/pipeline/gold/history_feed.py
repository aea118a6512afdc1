"""The table `<view>_history`: what gold answered, kept beyond the files of gold's versions.

    gold's change data feed ──answers after version v──► append    {version, from_version ...}
                                                         txn: v + 1

Fed by maintenance or as a run goes on, as `served_history` says. The table tells up to which
version it knows gold, in its newest ledger and in its own rows, so nothing is lost where it is fed
late and nothing comes twice where it is fed again: who starts from the same version carries the
same number, and one of them wins.
"""

from __future__ import annotations

import logging

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.errors import LakeError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import writer
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.schema import creation, evolution
from tidemill.lake.schema.verification import has_other_keys
from tidemill.lake.tables import Table
from tidemill.pipeline.gold.served_versions import NOTHING, Answers, answers_since

log = logging.getLogger(__name__)

_VERSION = "version"


def fed(lake: Lake, view: FeatureView) -> int:
    """Return the version of gold up to which the history tells, -1 for none; what it tells of
    other keys does not count."""
    table = lake.tables.of(view).history
    name = table.name
    if not lake.has(name) or lake.is_as_made(name):
        return NOTHING
    if has_other_keys(lake.metadata(name), table):
        return NOTHING
    for commit in lake.commits(name):
        if commit.makes_table:
            return NOTHING
        if commit.ledger and _VERSION in commit.ledger:
            return int(commit.ledger[_VERSION])
    newest = lake.spark.table(name).agg(F.max(_VERSION)).collect()[0][0]
    return NOTHING if newest is None else int(newest)


def feed_all(lake: Lake) -> None:
    """Bring the history of each view up to its gold, where the pipeline keeps one by the refresh
    and gold was refreshed."""
    if lake.pipeline.served_history != "refresh":
        return
    for view in lake.pipeline.views:
        if lake.gold_state(view).as_of is not None:
            feed(lake, view)


def feed(lake: Lake, view: FeatureView) -> int:
    """Append what gold answered since the last time, in one commit; return the rows appended.

    Where gold's changes are gone that far back, the history begins again with the whole of gold,
    and says so; keys that gold has no row of any more are then said to be gone.
    """
    table = lake.tables.of(view).history
    _conform(lake, table)
    after = fed(lake, view)
    answers = answers_since(lake, view, after)
    if answers is None:
        return 0
    rows = (
        answers.rows if after == NOTHING or not answers.begins else _with_gone(lake, view, answers)
    )
    ledger_fields = {
        "generation": lake.generation,
        "batch": -1,
        "from_version": after,
        _VERSION: answers.version,
    }
    reach("history.answers_read")
    before = lake.commits(table.name, 1)[0].version
    writer.write(
        rows.select(*table.column_names),
        table.name,
        ledger_fields,
        (f"{lake.app_id(table)}:history", after + 1),
    )
    reach("history.written")
    commit = lake.commits(table.name, 1)[0]
    return commit.metric("numOutputRows") if commit.version > before else 0


def _conform(lake: Lake, table: Table) -> None:
    """Make the table, again and empty where its answers are about other keys, or give it the
    columns of features that are new; LakeError where a feature has another type than the one it
    had."""
    creation.ensure(lake, table)
    if has_other_keys(lake.metadata(table.name), table):
        creation.create(lake, table, replace=True)
    types = lake.metadata(table.name).types
    for column in table.columns:
        declared = column.type.lower().replace(" ", "")
        if types.get(column.name, declared) != declared:
            message = f"keeps {column.name} as {types[column.name]}, the view declares {declared}"
            expected = "another name for the feature, so that the old answers stay as they were"
            raise LakeError(message, where=table.name, expected=expected)
    missing = [column for column in table.columns if column.name not in types]
    evolution.append_columns(lake.spark, table.name, missing)


def _with_gone(lake: Lake, view: FeatureView, answers: Answers) -> DataFrame:
    """Return the rows of a history that begins again, with a row for each key that is gone."""
    known = lake.spark.table(lake.tables.of(view).history.name)
    known = known.where("kind <> 'version'").select(*view.keys).distinct()
    gone = known.join(answers.rows.where("kind = 'row'").select(*view.keys), [*view.keys], "anti")
    at = answers.rows.where("kind = 'version'").select(
        "version", "as_of", "served_at", "served_day"
    )
    rows = gone.crossJoin(F.broadcast(at)).withColumns(
        {"kind": F.lit("gone"), "begins": F.lit(False)}
    )
    return answers.rows.unionByName(rows, allowMissingColumns=True)
