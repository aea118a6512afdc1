"""What gold answered, version by version, from its change data feed.

    commits of gold    v3 refresh   v4 OPTIMIZE   v5 earlier   v6 refresh
    answered           v3                                      v6: the changes of v4, v5 and v6

An answer is a version that a refresh, or maintenance, committed with a ledger. The changes of other
commits count from the next answer on, and so do those of a refresh to an earlier as_of, which is
not what is served. Changes behind the newest answer wait for the next.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.errors import UsageError
from tidemill.features import FeatureView
from tidemill.features.checks import key_of_answers
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.commits.ledger import RECENT, Commit
from tidemill.lake.parameters import ask, literal
from tidemill.lake.relations import Relation
from tidemill.lake.statements import statement

log = logging.getLogger(__name__)

# What a feed says of which files, versions or columns are gone; any other error is one.
_GONE = (
    *("FILE_NOT_EXIST", "FILE_NOT_FOUND", "FileNotFoundException", "PathNotFound"),
    *("DELTA_MISSING_CHANGE_DATA", "DELTA_CHANGE_DATA", "DELTA_VERSION_NOT_FOUND"),
    *("DELTA_FILE_NOT_FOUND", "DELTA_LOG_FILE_NOT_FOUND", "DELTA_TRUNCATED_TRANSACTION_LOG"),
)
NOTHING = -1  # the version of gold up to which an empty history tells


@dataclass(frozen=True)
class Answers:
    """The history's rows of gold's versions after one, up to `version`; `begins` where they start
    with the whole of gold, as what came before cannot be read any more."""

    rows: DataFrame
    version: int
    begins: bool


def answers_since(lake: Lake, view: FeatureView, after: int) -> Answers | None:
    """Return what gold answered after a version, None where it answered nothing since.

    The change data feed is read where gold's log and files still reach back so far; else the newest
    answer as a whole.
    """
    commits = _commits_after(lake, view, after)
    answered = [commit for commit in commits if commit.is_served]
    if not answered:
        return None
    newest = answered[-1]
    reaches = commits[0].version <= after + 1 and not (after == NOTHING and _is_another(commits))
    if reaches and (feed := _feed(lake, view, after, newest.version)):
        mapped = list(_mapped(commits, begins=after == NOTHING))
        return Answers(_rows(lake, view, feed, mapped), newest.version, after == NOTHING)
    lost = f"gold's changes after version {after} are gone, or of other keys"
    log.warning("answers of %s begin with the whole of gold: %s", view.name, lost)
    return _whole(lake, view, newest)


def newest_answer(lake: Lake, view: FeatureView) -> Answers | None:
    """Return the whole of what gold answers now; None where it has answered nothing yet."""
    for limit in (RECENT, None):
        for commit in lake.commits(_gold(lake, view), limit):
            if commit.is_served:
                return _whole(lake, view, commit)
    return None


def _whole(lake: Lake, view: FeatureView, answer: Commit) -> Answers:
    whole = Relation(_gold(lake, view), answer.version).frame(lake.spark)
    changes = whole.withColumns(
        {"_change_type": F.lit("insert"), "_commit_version": F.lit(answer.version).cast("bigint")}
    )
    mapped = list(_mapped([answer], begins=True))
    return Answers(_rows(lake, view, changes, mapped), answer.version, True)


def _gold(lake: Lake, view: FeatureView) -> str:
    return lake.tables.of(view).gold.name


def _commits_after(lake: Lake, view: FeatureView, after: int) -> list[Commit]:
    """Return gold's commits after a version, the oldest first, as far as the log has them."""
    recent = lake.commits(_gold(lake, view))
    missing = recent[-1].version - after - 1
    if missing > 0:
        recent = lake.commits(_gold(lake, view), RECENT + missing)
    return [commit for commit in reversed(recent) if commit.version > after]


def _is_another(commits: Sequence[Commit]) -> bool:
    """Return whether gold was written with other columns after a rebuild from bronze: it may have
    had other keys before, of which a feed from there tells too."""
    told = [(commit.operation, commit.ledger["generation"]) for commit in commits if commit.ledger]
    return any(
        operation != "MERGE" and generation != before
        for (_, before), (operation, generation) in pairwise(told)
    )


def _mapped(commits: Sequence[Commit], begins: bool) -> Iterator[tuple[int, Commit, bool]]:
    """Yield each commit's version with the answer that its changes count from; the first answer
    begins the history where `begins`."""
    waiting: list[int] = []
    for commit in commits:
        waiting.append(commit.version)
        if commit.is_served:
            for version in waiting:
                yield version, commit, begins
            waiting, begins = [], False


def _feed(lake: Lake, view: FeatureView, after: int, end: int) -> DataFrame | None:
    """Return gold's changes after a version up to another, None where they cannot be read."""
    name = _gold(lake, view)
    try:
        feed = Relation(name, changes=(after + 1, end)).frame(lake.spark)
        # A file that VACUUM has deleted is missed only by who reads a column of it.
        feed.agg(F.bit_xor(F.xxhash64("updated_at", "_commit_version"))).collect()
    except Exception as error:  # Spark 4.2 leaves a missing file as py4j has it
        if not any(word in str(error) for word in _GONE):
            raise
        reason = str(error).splitlines()[0]
        log.info("%s: the changes after version %d cannot be read: %s", name, after, reason)
        return None
    return feed


def _rows(
    lake: Lake, view: FeatureView, changes: DataFrame, mapped: Sequence[tuple[int, Commit, bool]]
) -> DataFrame:
    if key := key_of_answers(view):
        raise UsageError(
            f"view {view.name} has a key called {key}, which answers have a column of",
            where="keys",
            expected="another name, by `select` in the view, and `rebuild --from bronze`",
        )
    absent = {c.name: F.lit(None).cast(c.type) for c in view.shown if c.name not in changes.columns}
    frames = {
        f"{view.name}_gold_changes": changes.withColumns(absent),
        f"{view.name}_answers": F.broadcast(_answers(lake, mapped)),
    }
    return ask(lake.spark, statement("history_rows", view), {}, frames)


def _answers(lake: Lake, mapped: Sequence[tuple[int, Commit, bool]]) -> DataFrame:
    """Return which answer each commit's changes count from, times as literals: they have a zone."""
    rows = [
        (
            version,
            answer.version,
            begins,
            literal(ledger.instant((answer.ledger or {})["as_of"])).split("'")[1],
            literal(answer.at).split("'")[1],
        )
        for version, answer, begins in mapped
    ]
    texts = "__commit BIGINT, version BIGINT, begins BOOLEAN, as_of STRING, served_at STRING"
    frame = lake.spark.createDataFrame(rows, texts)
    timed = {name: F.col(name).cast("timestamp") for name in ("as_of", "served_at")}
    return frame.withColumns(timed)
