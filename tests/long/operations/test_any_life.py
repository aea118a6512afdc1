"""A lake of which everything changes, in any order: events, dimension, definition, history.

                ┌── events, a little late; changes of the dimension ──► run --once
    any step ───┼── another definition ──► plan says how ──► that command, until nothing is due
                ├── refused events are sent again
                ├── the same beside the living lake ──► swap, perhaps back
                ├── maintain; recompute, whose days are what brute force counts
                └── the same, cut off at any point ──► again
    after each step: gold is what brute force counts of all events; the events agree with gold
    now and then:    so is a training set; the online store, gold and a training set agree

Some lives have streams, some views that split by shop, where events of shops that none is split by
are refused. The brute force shares no code with the package. A dimension's change is never older
than an event that was there, so that what an event takes does not depend on the order of the two.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import Row, SparkSession

import command_line
import streams_of_life
from change_log import Change
from command_line import Answer, call, ending_at
from lakes import NOW
from runs import write_file
from streams_of_life import STREAMS
from tidemill.config.settings import iso
from tidemill.lake.commits import failpoints

pytestmark = pytest.mark.stream
WITH_STREAMS, WITH_REFUSALS = 100, 200  # seeds from here on
STEPS, MANY = 9, 20
SEEDS = [1, WITH_STREAMS + 1, WITH_REFUSALS + 1]
MORE = [each for first in SEEDS for each in range(first + 1, first + 5)]
CURES = 12  # commands that one change may need
REBUILD = (
    "rebuild.chunk_written",
    "rebuild.put_in_place",
    "refresh.merged",
    "renew.checkpoint_forgotten",
    "renew.table_emptied",
)
CUT_OFF = {
    "run": failpoints.POINTS,
    "rebuild": (*REBUILD, *failpoints.POINTS),
    "swap": failpoints.SWAP_POINTS,
    "maintain": failpoints.EXPIRY_POINTS,
    "recompute": failpoints.RECOMPUTE_POINTS,
}
MINUTE = timedelta(minutes=1)
WINDOWS = {"1h": 1, "3h": 3, "1d": 24, "2d": 48}  # hours
HISTORIES = {"4h": 4, "30h": 30, "4d": 96, "20d": 480}
SEGMENTS, TIERS = ("basic", "gold"), ("low", "high")


@dataclass(frozen=True)
class Event:
    """An event as it was sent, and what its buyer was at that time."""

    number: int
    buyer: str
    shop: str
    points: int
    at: datetime
    segment: str | None
    tier: str | None

    def record(self) -> str:
        said = {"event_id": f"e{self.number}", "buyer": self.buyer, "shop": self.shop}
        return json.dumps({**said, "points": self.points, "at": self.at.isoformat()})

    def group(self, taken: str) -> str | None:
        return self.segment if taken == "segment" else self.tier


@dataclass(frozen=True)
class Definition:
    """What is declared: the windows and features of each view, and how much is kept."""

    history: str = "30h"
    windows: tuple[str, ...] = ("1h", "1d")
    features: tuple[str, ...] = ("count", "sum")
    views: tuple[str, ...] = ("spending",)
    taken: str = "segment"  # what the column `grade` takes of the dimension
    factor: int = 2
    key: str = "buyer"  # of the view `spending`
    bucket: int = 1  # minutes
    more: tuple[str, ...] = ()  # features of the other views besides
    streams: tuple[str, ...] = ()
    minutes: int = 30  # the gap or length of the streams that have one
    shops: int = 0  # how many of them each view splits by; events of others are refused

    def key_of(self, view: str) -> str:
        return self.key if view == "spending" else KEYS[view]

    def cut(self, at: datetime) -> datetime:
        """Return the end of the newest bucket that is over at a time."""
        return at - timedelta(minutes=at.minute % self.bucket, seconds=at.second)

    def features_of(self, view: str) -> list[str]:
        split = [f"of_{shop}" for shop in SHOPS[: self.shops]]
        more = self.more if view != "spending" else ()
        return [*dict.fromkeys((*self.features, *more, *split))]

    def feature_words(self, view: str) -> list[dict[str, Any]]:
        named = [name for name in self.features_of(view) if not name.startswith("of_")]
        split = [{"count": {"by": {"shop": SHOPS[: self.shops]}}}] if self.shops else []
        return [
            {**words, "over": list(self.windows)}
            for words in (*(FEATURES[name].words for name in named), *split)
        ]

    def takes(self, event: Event) -> bool:
        return not self.shops or event.shop in SHOPS[: self.shops]

    def words(self, folder: Path) -> dict[str, Any]:
        schema = {"buyer": "string", "shop": "string", "points": "bigint", "grade": "string?"}
        customer = {"customer_id": "string", "segment": "string?", "tier": "string?"}
        return {
            "pipeline": "life",
            "source": {"kind": "files", "input": str(folder / "events")},
            "history": self.history,
            "dimensions": [
                {
                    "name": "customer",
                    "keys": ["customer_id"],
                    "schema": customer,
                    "source": {"kind": "files", "input": str(folder / "changes")},
                    "history": "type2",
                }
            ],
            "enrich": [
                {
                    "dimension": "customer",
                    "keys": {"buyer": "customer_id"},
                    "columns": {"grade": self.taken},
                }
            ],
            "views": [
                {
                    "name": view,
                    "keys": [self.key_of(view)],
                    "event_time": "at",
                    "bucket": f"{self.bucket}m",
                    "schema": schema,
                    "select": {
                        "wares": {"string": "coalesce(grade, 'none')"},
                        "scaled": {"bigint": f"points * {self.factor}"},
                    },
                    "features": self.feature_words(view),
                }
                for view in self.views
            ],
            "streams": streams_of_life.declared(self.streams, self.minutes),
        }


Rows = Mapping[str, dict[str, Any]]  # by key
Fold = Callable[[Sequence[Event], Definition], Any]


@dataclass(frozen=True)
class Made:
    """A feature as the file has it, its column without the window, and its value by brute force."""

    words: dict[str, Any]
    column: str
    fold: Fold


def ends(events: Sequence[Event], last: bool) -> str | None:
    found = sorted((event.at, event.shop) for event in events)
    return found[-1 if last else 0][1] if found else None


SHOPS = ["s0", "s1", "s2", "s3"]
BROKEN = ["{", json.dumps({"event_id": "b", "buyer": "c1", "points": "many"})]
KEYS = {"spending": "buyer", "shops": "shop", "groups": "wares"}
FEATURES = {
    "count": Made({"count": {}}, "count", lambda events, _: len(events)),
    "sum": Made({"sum": "points"}, "points_sum", lambda events, _: sum(e.points for e in events)),
    "scaled": Made(
        {"sum": "scaled"},
        "scaled_sum",
        lambda events, definition: sum(e.points * definition.factor for e in events),
    ),
    "min": Made(
        {"min": "points"},
        "points_min",
        lambda events, _: min((e.points for e in events), default=None),
    ),
    "last": Made({"last": "shop"}, "shop_last", lambda events, _: ends(events, True)),
    "distinct": Made(
        {"distinct": "shop"}, "shop_distinct", lambda events, _: len({e.shop for e in events})
    ),
    "good": Made(
        {"count": {}, "where": "grade IN ('gold', 'high')", "name": "good"},
        "good_count",
        lambda events, d: sum(e.group(d.taken) in ("gold", "high") for e in events),
    ),
}


def of_shop(shop: str) -> Made:
    return Made({}, f"{shop}_count", lambda events, _: sum(e.shop == shop for e in events))


NAMED = [*FEATURES]
FEATURES |= {f"of_{shop}": of_shop(shop) for shop in SHOPS}
ADDING_UP = ("count", "sum", "scaled", "min", "last", "good")  # those that have a lifetime


@dataclass
class Generation:
    """The events that its clean has judged, and which of them it took: once taken, taken."""

    judged: int = 0
    taken: set[int] = field(default_factory=set)

    def judge(self, sent: Sequence[Event], definition: Definition) -> None:
        self.taken |= {e.number for e in sent[self.judged :] if definition.takes(e)}
        self.judged = len(sent)


@dataclass
class Life:
    """A pipeline's folder, what was sent so far, and what is declared now."""

    spark: SparkSession
    folder: Path
    random: random.Random
    patch: pytest.MonkeyPatch
    now: datetime = NOW - timedelta(days=12)
    definition: Definition = Definition()
    sent: list[Event] = field(default_factory=list)  # some more than once
    living: Generation = field(default_factory=Generation)
    beside: Generation = field(default_factory=Generation)
    customers: dict[str, list[tuple[datetime, str, str]]] = field(default_factory=dict)
    files: int = 0
    told: list[str] = field(default_factory=list)  # what happened, for who reads a failure
    has_streams: bool = False
    has_refusals: bool = False

    # -- the outside --

    def call(self, command: str, *words: object) -> Answer:
        """Call a command whose first word is the pipeline's file."""
        return self.called(command, self.folder / "life.yaml", *words)

    @property
    def tale(self) -> str:
        return "\n".join(["", *self.told, ""])

    def called(self, *words: object) -> Answer:
        self.told.append(" ".join(["tidemill", *map(str, words)]))
        self.patch.setattr(command_line, "NOW", self.now)
        return call(*words, "--root", self.folder / "lake", "--json")

    def done(self, command: str, *words: object) -> Answer:
        answer = self.call(command, *words)
        assert answer.code == 0, f"{answer}{self.tale}"
        return answer

    def cut_off(self, command: str, *words: str) -> None:
        """Perhaps run the command first as far as some point, where it ends."""
        if self.random.random() < 0.6:
            return
        point = self.random.choice(CUT_OFF[command])
        with ending_at(point):
            answer = self.call(command, *words)
            self.told.append(f"{answer.code} cut off at {point}, or not reached")

    def declare(self, definition: Definition) -> None:
        self.definition = definition
        self.told.append(str(definition))
        text = yaml.safe_dump(
            json.loads(json.dumps(definition.words(self.folder))), sort_keys=False
        )
        (self.folder / "life.yaml").write_text(text)

    def send(self, folder: str, records: Sequence[str]) -> None:
        self.files += 1
        write_file(self.folder / folder, f"{self.files:03}.jsonl", records, age=10_000 - self.files)

    # -- the steps --

    def sent_events(self) -> None:
        """A while goes by, and its events come; a few are of up to an hour before."""
        before, draw = self.now, self.random
        self.now += MINUTE * draw.choice([3, 30, 90, 400, 1500])
        before = max(before, self.now - timedelta(hours=2))  # none is older than any `history`
        length = (self.now - before) // timedelta(seconds=1)
        new: list[Event] = []
        for _ in range(draw.randrange(1, 40)):
            late = timedelta(seconds=draw.randrange(3600) if draw.random() < 0.2 else 0)
            at = before + timedelta(seconds=draw.randrange(length)) - late
            buyer = f"c{draw.randrange(5)}"
            segment, tier = self.customer(buyer, at)
            shop, points = draw.choice(SHOPS), draw.randrange(-5, 50)
            new.append(Event(len(self.sent) + len(new), buyer, shop, points, at, segment, tier))
        self.sent += [*new, *draw.choices(self.events or new, k=2)]  # again
        records = [event.record() for event in self.sent[-len(new) - 2 :]]
        self.send("events", [*records, *draw.sample(BROKEN, draw.choice([0, 1]))])

    @property
    def events(self) -> list[Event]:
        """Those that the living generation has taken."""
        return [*{e.number: e for e in self.sent if e.number in self.living.taken}.values()]

    def ran(self) -> None:
        """What there is goes through."""
        self.done("run", "--once")
        self.living.judge(self.sent, self.definition)

    def customer(self, buyer: str, at: datetime) -> tuple[str | None, str | None]:
        held = [found for found in self.customers.get(buyer, []) if found[0] <= at]
        return held[-1][1:] if held else (None, None)

    def sent_changes(self) -> None:
        """Some customers become others, now."""
        records = []
        for number in self.random.sample(range(5), 2):
            self.now += MINUTE
            row = {
                "customer_id": f"c{number}",
                "segment": self.random.choice(SEGMENTS),
                "tier": self.random.choice(TIERS),
            }
            versions = self.customers.setdefault(row["customer_id"], [])
            lsn = sum(map(len, self.customers.values())) * 10 + 10
            versions.append((self.now, row["segment"], row["tier"]))
            change = Change(lsn, self.now, None, row, "c" if len(versions) == 1 else "u")
            records.append(change.record())
        self.send("changes", records)

    def another_definition(self) -> None:
        draw, was = self.random, self.definition
        windows = {*draw.sample([*WINDOWS], draw.choice([1, 2])), "1h"}
        features = draw.sample(NAMED, draw.choice([1, 2, 3]))
        if draw.random() < 0.6:
            features = [*dict.fromkeys([*was.features, *features])]
        more = draw.sample(NAMED, 1) if draw.random() < 0.5 else []
        if draw.random() < 0.3:
            windows.add("lifetime")
            features = [name for name in features if name in ADDING_UP] or ["count"]
            more = [name for name in more if name in ADDING_UP]
        hours = max(WINDOWS[window] for window in windows if window in WINDOWS)
        histories = [name for name, kept in HISTORIES.items() if kept > hours]
        views = {"spending", *draw.sample([*KEYS], draw.choice([0, 1, 2]))}
        self.declare(
            Definition(
                draw.choice(histories),
                tuple(sorted(windows)),
                tuple(sorted(features)),
                tuple(view for view in KEYS if view in views),
                draw.choice(["tier", "segment"]) if draw.random() < 0.2 else was.taken,
                draw.choice([2, 3]) if draw.random() < 0.3 else was.factor,
                draw.choice(["buyer", "shop"]) if draw.random() < 0.1 else was.key,
                draw.choice([1, 5]) if draw.random() < 0.1 else was.bucket,
                tuple(more),
                self.other_streams() if self.has_streams else (),
                was.minutes,
                draw.choice([was.shops, 0, 2, 3, 4]) if self.has_refusals else 0,
            )
        )

    def other_streams(self) -> tuple[str, ...]:
        if self.random.random() < 0.4:
            return self.definition.streams
        return tuple(self.random.sample([*STREAMS], self.random.choice([0, 1, 2, 3])))

    def cured(self) -> None:
        """Do what `plan` says, until it says nothing any more."""
        for _ in range(CURES):
            due = self.due()
            if not due:
                return
            command, *words = self.random.choice(due).split()[1:]
            words = [word for word in words if not word.endswith(".yaml")]
            self.cut_off(command, *words)
            answer = self.call(command, *words)
            self.told.append(f"{answer.code} {answer.out[-300:]}")
            if words == ["--from", "bronze"]:
                self.living = Generation()
                self.living.judge(self.sent, self.definition)
        raise AssertionError(f"plan has no end{self.tale}")

    def due(self) -> list[str]:
        """The commands that `plan` names; a stream that a rebuild left out is refused, with one."""
        answer = self.call("plan")
        if self.has_streams and answer.code == 2:
            self.told.append(f"plan: {answer.error}")
            return [answer.error["expected"].split("`")[1]]
        assert answer.code == 0, f"{answer}{self.tale}"
        changes = answer.json.get("views", [answer.json])
        ways = [change["way"] for change in changes if "way" in change]  # not of streams
        return [way.split("`")[1] for way in ways if "`" in way]

    def swapped(self) -> None:
        """Another definition is made of all there ever was, beside the living lake, which goes on;
        it takes the living one's place, and perhaps gives it back."""
        was = self.definition
        self.another_definition()
        # Other keys are refused; what is older than `history` when it is read is too old.
        other = replace(self.definition, key=was.key, history="20d")
        if self.has_streams:
            other = replace(other, minutes=self.random.choice([30, 60]))
        self.declare(other)
        if self.call("rebuild", "--from", "source").code:  # what lies there is of another one
            shutil.rmtree(self.folder / "lake" / "_rebuild")
            self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # a new process' own
            self.beside = Generation()
            self.cut_off("rebuild", "--from", "source")
            self.done("rebuild", "--from", "source")
        if self.random.random() < 0.5:
            self.sent_events()
            self.declare(was)
            self.ran()
            self.declare(other)
            self.done("rebuild", "--from", "source")
        self.beside.judge(self.sent, other)
        self.done("diff")
        for definition in (other, was, other)[: self.random.choice([1, 1, 2, 3])]:
            self.declare(definition)
            self.cut_off("swap")
            self.done("swap")
            self.living, self.beside = self.beside, self.living
            self.ran()

    def replayed(self) -> None:
        """What was refused is sent again as it is: what is taken now is landed, once."""
        file = self.folder / "refused.jsonl"
        answer = self.called("quarantine", "list", self.folder / "life.yaml", "--out", file)
        assert answer.code == 0, f"{answer}{self.tale}"
        if not file.exists():
            return
        answer = self.called("quarantine", "replay", self.folder / "life.yaml", file)
        assert answer.code in (0, 1), f"{answer}{self.tale}"
        self.living.judged = 0  # the next run takes them

    def recomputed(self) -> None:
        """The days that are over are made again: what each view's features were at their ends."""
        self.cut_off("recompute")
        self.done("recompute")
        for view in self.definition.views:
            key, nothing = self.definition.key_of(view), self.row(view, [], self.as_of)
            rows = [row.asDict() for row in self.rows(f"{view}_batch")]
            for day in {row["recomputed_day"] for row in rows}:
                end = datetime(day.year, day.month, day.day, tzinfo=NOW.tzinfo) + timedelta(days=1)
                of_day = [r for r in rows if (r["recomputed_day"], r["row_kind"]) == (day, "row")]
                shown = {row[key]: row for row in of_day}
                assert len(shown) == len(of_day), self.tale
                self.compare(view, shown, self.wanted(view, end), nothing)

    # -- the judges --

    def wanted(self, view: str, as_of: datetime | None = None) -> dict[str, dict[str, Any]]:
        """Every feature of every key that ever had an event, at a time, or now."""
        found: dict[str, list[Event]] = {}
        for event in self.events:
            group = event.group(self.definition.taken) or "none"
            keys = {"buyer": event.buyer, "shop": event.shop, "wares": group}
            found.setdefault(keys[self.definition.key_of(view)], []).append(event)
        return {key: self.row(view, events, as_of or self.as_of) for key, events in found.items()}

    @property
    def as_of(self) -> datetime:
        newest = max(event.at for event in self.events)
        return self.definition.cut(newest) + self.definition.bucket * MINUTE

    def row(self, view: str, events: Sequence[Event], as_of: datetime) -> dict[str, Any]:
        made = {}
        for window in self.definition.windows:
            since = as_of - timedelta(hours=WINDOWS.get(window, 10**5))
            inside = [event for event in events if since <= event.at < as_of]
            for name in self.definition.features_of(view):
                feature = FEATURES[name]
                made[f"{feature.column}_{window}"] = feature.fold(inside, self.definition)
        return made

    def rows(self, table: str) -> list[Row]:
        return self.spark.read.format("delta").load(str(self.folder / "lake" / table)).collect()

    def compare(self, view: str, shown: Rows, wanted: Rows, nothing: dict[str, Any]) -> None:
        """A key without a row has the empty values."""
        for name in {*shown, *wanted}:
            got, right = shown.get(name, nothing), wanted.get(name, nothing)
            assert {n: got[n] for n in right} == right, f"{view} {name}{self.tale}"

    def check(self) -> None:
        for view in self.definition.views:
            key, rows = self.definition.key_of(view), self.rows(f"{view}_features")
            shown = {row[key]: row.asDict() for row in rows}
            assert len(shown) == len(rows), self.tale
            self.compare(view, shown, self.wanted(view), self.row(view, [], self.as_of))
        for name in self.definition.streams:
            rows = [row.asDict() for row in self.rows(name)]
            off = streams_of_life.difference(name, self.definition.minutes, self.events, rows)
            assert not off, f"{off}{self.tale}"
        answer = self.call("reconcile", "--from", "events")
        assert answer.code == 0, f"{answer}{self.tale}"

    def trained(self, view: str) -> None:
        """A training set has the values of then, or says that it cannot know them."""
        key, draw, now = self.definition.key_of(view), self.random, self.as_of
        known = [*self.wanted(view)]
        times = [now - draw.randrange(3 * 86400) * timedelta(seconds=1) for _ in range(20)]
        spine, out = self.folder / "spine.jsonl", self.folder / "set.jsonl"
        rows = [{key: draw.choice(known), "timestamp": at.isoformat()} for at in times]
        rows += [{key: each, "timestamp": now.isoformat()} for each in known]
        spine.write_text("".join(json.dumps(row) + "\n" for row in rows))
        words = ("--spine", spine, "--out", out, "--view", view)
        words = (*words, "--pipeline", self.folder / "life.yaml", "--outside", "null")
        answer = self.called("training-set", *words, "--duplicates", "keep")
        assert answer.code == 0, f"{answer}{self.tale}"
        for row in map(json.loads, out.read_text().splitlines()):
            at = datetime.fromisoformat(row["timestamp"])
            if row.get("outside_history"):
                assert at < now, f"{row}{self.tale}"
                continue
            edge = self.definition.cut(at)
            right = self.wanted(view, edge)[row[key]]
            assert {name: row[name] for name in right} == right, f"{view} {row}{self.tale}"

    def audited(self, view: str) -> None:
        """What is online, gold, and what training says was served are the same."""
        store = ("--store", self.folder / "store.db")
        self.done("publish", *store)
        words = ("audit", view, *store, "--pipeline", self.folder / "life.yaml")
        answer = self.called(*words)
        assert answer.code == 0, f"{answer}{self.tale}"


@pytest.mark.parametrize(
    ("seed", "steps"),
    [
        *((seed, STEPS) for seed in SEEDS),
        *(pytest.param(seed, MANY, marks=pytest.mark.full) for seed in MORE),
    ],
)
def test_any_life(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, steps: int
) -> None:
    life = Life(spark, tmp_path, random.Random(seed), monkeypatch)
    life.has_refusals = seed > WITH_REFUSALS
    life.has_streams = seed > WITH_STREAMS and not life.has_refusals
    life.declare(Definition(streams=tuple(STREAMS) if life.has_streams else ()))
    life.sent_changes()
    life.sent_events()
    life.ran()
    kinds = ["events", "events", "changes", "definition", "definition", "swap", "maintain", "days"]
    kinds += ["replay"] if life.has_refusals else []
    for _ in range(steps):
        step = life.random.choice(kinds)
        life.told.append(f"-- {step}, {iso(life.now)}")
        if step == "events":
            life.sent_events()
        elif step == "changes":
            life.sent_changes()
            life.sent_events()
        elif step == "definition":
            life.another_definition()
            life.cured()
        elif step == "swap":
            life.swapped()
        elif step == "days":
            life.recomputed()
        elif step == "replay":
            life.replayed()
        else:
            life.cut_off("maintain")
            life.done("maintain")
        life.cut_off("run", "--once")
        life.ran()
        life.check()
        if life.random.random() < 0.3:
            view = life.random.choice(life.definition.views)
            life.trained(view)
            life.audited(view)
