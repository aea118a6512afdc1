"""The table `<pipeline>_alerts`: for each key the episodes in which a rule held.

    gold's answers since the last look ──rules──► does it fire, does it end ─┐
    newest row of each alert and key ────────────────────────────────────────┴─alert_changes.sql
                                                                                       │
                                           <pipeline>_alerts ◄──append, txn: number of the look

Gold's versions are looked at one after another, also those that came while nobody looked: an alert
of a few minutes is not missed. A rule that is new, or has changed, looks at gold as it is now. A
key without a row in gold has no alert, and neither has a rule that is declared no more.

A rule with a model reads its score. Another version of the model makes another rule of it, which
looks at gold as it is now.

The newest ledger of a view says which rules looked, up to which version. Who looks from the same
ledger on carries the same transaction, so one of two wins, and an episode fires once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.alert_rule import MODEL_VERSION, AlertRule
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.parameters import ask
from tidemill.lake.schema import creation
from tidemill.lake.statements import statement
from tidemill.pipeline.alerts.scoring.model_version import ModelVersion, current
from tidemill.pipeline.gold.served_versions import (
    NOTHING,
    Answers,
    answers_since,
    newest_answer,
)
from tidemill.pipeline.row_writes.frame_cache import cached

log = logging.getLogger(__name__)

_JSON = {"ignoreNullFields": "false", "timeZone": "UTC"}
Changed = dict[tuple[str, str], int]  # how often, by alert and state
FAR = 50  # versions without a change after which a ledger says that they were looked at


@dataclass(frozen=True)
class _Ruled:
    """A rule, and the version of its model, None without one."""

    rule: AlertRule
    model: ModelVersion | None

    @classmethod
    def now(cls, rule: AlertRule) -> _Ruled:
        """Return the rule with the version that its model has now."""
        return cls(rule, current(rule.model) if rule.model else None)

    @property
    def written(self) -> str:
        """What makes it the same rule at the next look."""
        return self.rule.written + (f" {self.model.version}" if self.model else "")


@dataclass(frozen=True)
class Looked:
    """What the newest ledger of a view says: its number, and the rules, as they were written, that
    have looked at gold up to a version, -1 for none."""

    number: int = 0
    version: int = NOTHING
    rules: frozenset[str] = frozenset()


@dataclass
class Episodes:
    """The alerts of a pipeline's views; remembers what it has looked at where nothing changed.

    `told` hears of each look at a view how often an alert changed to a state.
    """

    lake: Lake
    told: Callable[[str, Changed], None] | None = None
    _seen: dict[str, int] = field(default_factory=dict)
    _ruled_by_none: set[str] = field(default_factory=set)

    def look(self) -> int:
        """Look at what gold has answered of each view; return the changes."""
        lake = self.lake
        if not lake.pipeline.alerts and not lake.has(lake.tables.alerts.name):
            return 0
        return sum(map(self._look, lake.pipeline.views))

    def _look(self, view: FeatureView) -> int:
        if view.name in self._ruled_by_none:
            return 0
        lake, rules = self.lake, [_Ruled.now(rule) for rule in self.lake.pipeline.alerts_of(view)]
        told = looked(lake, view) if lake.has(lake.tables.alerts.name) else Looked()
        if not (rules or told.rules):
            # To find that it has none the whole log is read: no ledger is of the view.
            self._ruled_by_none.add(view.name)
            return 0
        if lake.gold_state(view).as_of is None:
            return 0
        creation.ensure(lake, lake.tables.alerts)
        as_written = frozenset(rule.written for rule in rules)
        since = max(told.version, self._seen.get(view.name, NOTHING))
        answers = answers_since(lake, view, since) if told.version != NOTHING else None
        if answers is None and as_written == told.rules:
            return 0
        whole = answers if answers and answers.begins else None
        if whole is None and as_written != told.rules:
            whole = newest_answer(lake, view)
        if answers is None and whole is None:
            return 0  # gold has refreshed to an earlier time alone, which it does not answer with
        version = whole.version if whole and told.version == NOTHING else since
        version = answers.version if answers else version
        with cached(_Looks(lake, view, rules, told, answers, whole).changes()) as rows:
            grouped = rows.groupBy("alert", "state").count().collect()
            changed: Changed = {(row[0], row[1]): row[2] for row in grouped}
            count = sum(changed.values())
            if count or as_written != told.rules or version - told.version >= FAR:
                _append(lake, view, rows, Looked(told.number + 1, version, as_written))
                self._seen[view.name] = looked(lake, view).version  # another's, if that was first
            else:
                self._seen[view.name] = version
        if self.told:
            self.told(view.name, changed)
        log.info("alerts of %s: %d changes up to version %d", view.name, count, version)
        return count


def looked(lake: Lake, view: FeatureView) -> Looked:
    """Return what the newest ledger of a view says; nothing where gold was made anew since."""
    for limit in (ledger.RECENT, None):
        for commit in lake.commits(lake.tables.alerts.name, limit):
            said = commit.ledger or {}
            if said.get("view") == view.name and said["generation"] == lake.generation:
                return Looked(said["look"], said["version"], frozenset(said["rules"]))
    return Looked()


@dataclass(frozen=True)
class _Looks:
    """One look: what rules that have looked before say of `answers` since, None for nothing new,
    and the others of gold as a whole, which is not read otherwise."""

    lake: Lake
    view: FeatureView
    rules: Sequence[_Ruled]
    told: Looked
    answers: Answers | None
    whole: Answers | None

    def changes(self) -> DataFrame:
        """Return the rows to append, but for their date."""
        before = self._before()
        frames = {
            f"{self.view.name}_judged": reduce(DataFrame.unionByName, self._judged(before)),
            f"{self.view.name}_alerts_before": before,
        }
        values = {"generation": self.lake.generation, "look": self.told.number + 1}
        return ask(self.lake.spark, statement("alert_changes", self.view), values, frames)

    def _judged(self, before: DataFrame) -> Iterator[DataFrame]:
        """Yield what each rule says of each row, and ends for want of a row or of a rule."""
        settled = [rule for rule in self.rules if rule.written in self.told.rules]
        fresh = [rule for rule in self.rules if rule.written not in self.told.rules]
        if self.answers is not None:
            yield from _said(self.view, settled, self.answers.rows)
        if self.whole is not None:
            yield from _said(self.view, fresh, self.whole.rows)
            begins = self.answers is not None and self.answers.begins
            yield self._ends(before, self.whole, self.rules if begins else fresh)

    def _ends(self, before: DataFrame, whole: Answers, saw_whole: Sequence[_Ruled]) -> DataFrame:
        """Return an end for each open alert whose key is not among all of gold's, and for each of a
        rule that is declared no more."""
        keys = whole.rows.where("kind = 'row'").select(_key(self.view)).distinct()
        opened = before.where("state = 'fired'").select("alert", "key")
        of_whole = opened.where(F.col("alert").isin([one.rule.name for one in saw_whole]))
        of_none = opened.where(~F.col("alert").isin([one.rule.name for one in self.rules]))
        ended = of_whole.join(keys, ["key"], "anti").unionByName(of_none)
        at = whole.rows.where("kind = 'version'").select("version", "as_of", "served_at")
        return ended.crossJoin(F.broadcast(at)).withColumns(
            {
                "cooldown": F.lit(0).cast("bigint"),
                "fires": F.lit(False),
                "ends": F.lit(True),
                "features": F.lit(None).cast("string"),
            }
        )

    def _before(self) -> DataFrame:
        """Return the newest row of each alert and key."""
        rows = self.lake.spark.table(self.lake.tables.alerts.name)
        state = F.struct("state", "episode", "at", "fired_at")
        newest = F.max_by(state, F.struct("served_at", "look", "version")).alias("newest")
        of_view = rows.where(F.col("view") == self.view.name).groupBy("alert", "key")
        return of_view.agg(newest).select("alert", "key", "newest.*")


def _key(view: FeatureView) -> Column:
    return F.to_json(F.struct(*view.keys)).alias("key")


def _said(view: FeatureView, rules: Sequence[_Ruled], rows: DataFrame) -> Iterator[DataFrame]:
    """Yield what each rule says of each answered row: those without a model in one pass, each of
    the others in one of its own, where it has its score."""
    of_keys = rows.where("kind <> 'version'")
    plain = [one for one in rules if one.model is None]
    if plain:
        yield _looked_at(view, of_keys, plain)
    for one in rules:
        if one.model is not None:
            # Not at the top: NumPy and pandas are not needed by rules without a model.
            from tidemill.pipeline.alerts.scoring.scores import with_score

            types = {**view.types, **{column.name: column.type for column in view.shown}}
            yield _looked_at(view, with_score(of_keys, one.rule, one.model, types), [one])


def _looked_at(view: FeatureView, rows: DataFrame, rules: Sequence[_Ruled]) -> DataFrame:
    looks = F.explode(F.array(*map(_look, rules))).alias("look")
    at = ("version", "as_of", "served_at")
    return rows.select(_key(view), *at, looks).select("key", *at, "look.*")


def _look(ruled: _Ruled) -> Column:
    rule, stays = ruled.rule, F.col("kind") == "row"
    fires = stays & F.coalesce(F.expr(str(rule.when)), F.lit(False))
    over = F.expr(rule.until) if rule.until is not None else ~fires
    names: list[str | Column] = [*sorted(rule.reads)]
    if ruled.model is not None:
        names.append(F.lit(ruled.model.version).alias(MODEL_VERSION))
    read = F.to_json(F.struct(*names), _JSON) if names else F.lit("{}")
    return F.struct(
        F.lit(rule.name).alias("alert"),
        F.lit(int(rule.pause.total_seconds())).cast("bigint").alias("cooldown"),
        fires.alias("fires"),
        (~stays | F.coalesce(over, F.lit(False))).alias("ends"),
        F.when(stays, read).alias("features"),
    )


def _append(lake: Lake, view: FeatureView, rows: DataFrame, looked: Looked) -> None:
    table = lake.tables.alerts
    ledger_fields = {
        "generation": lake.generation,
        "batch": -1,
        "view": view.name,
        "look": looked.number,
        "version": looked.version,
        "rules": sorted(looked.rules),
    }
    reach("alerts.looked")
    writer.write(
        rows.withColumn("date", F.to_date("served_at")).select(*table.column_names),
        table.name,
        ledger_fields,
        (f"{lake.app_id(table)}:{view.name}", looked.number),
    )
    reach("alerts.written")
