"""Alerts: one episode for each time that a rule holds for a key, however it is looked at."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import tidemill
from children import Children
from lakes import Event, Lakes, TestLake, at
from runs import Small
from tidemill.config.pipeline_file import load
from tidemill.errors import UsageError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import failpoints
from tidemill.lake.commits.failpoints import ALERT_POINTS, Injected
from tidemill.pipeline.alerts import episodes
from tidemill.pipeline.alerts.episodes import Episodes
from tidemill.pipeline.gold import served_versions

BUSY = {"name": "BUSY", "when": "view_count_1h > 2", "cooldown": "20m"}
MANY = {"name": "MANY", "when": "view_count_1h >= 4", "until": "view_count_1h < 2"}
ZERO = {"name": "ZERO", "when": "view_count_1h = 0 AND view_count_1d > 0"}
Change = tuple[str, str, str, datetime]  # alert, profile, state, at


def views(profile: str, *times: str) -> list[Event]:
    return [(None, profile, "g", "view", at(time)) for time in times]


def changes(lake: TestLake) -> list[Change]:
    """The rows of the alerts table, in their order."""
    rows = lake.spark.sql(
        "SELECT alert, get_json_object(key, '$.profile_id') AS who, state, unix_seconds(at), look "
        "FROM engagement_alerts ORDER BY look, version, alert, who"
    ).collect()
    zone = at("00:00").tzinfo
    return [(row[0], row[1], row[2], datetime.fromtimestamp(row[3], zone)) for row in rows]


def with_rules(lake: TestLake, *rules: dict[str, str]) -> Episodes:
    """Who looks at the same lake, opened with other rules."""
    return Episodes(replace(lake.lake, pipeline=lake.lake.pipeline.overridden({"alerts": rules})))


def expected(lake: TestLake) -> list[Change]:
    """The changes by gold's rows at each of its versions, in Python."""
    found: list[Change] = []
    is_open: dict[tuple[str, str], bool] = {}
    rests: dict[tuple[str, str], datetime] = {}
    served = sorted((one for one in lake.ledgers() if "as_of" in one), key=lambda o: o["version"])
    for one in served:
        end = datetime.fromisoformat(one["as_of"])
        now: list[Change] = []
        for (profile, _), row in lake.gold(one["version"]).items():
            views_1h = row["view_count_1h"]
            for name, fires, ends, pause in (
                ("BUSY", views_1h > 2, views_1h <= 2, 20),
                ("MANY", views_1h >= 4, views_1h < 2, 0),
                ("ZERO", views_1h == 0, views_1h > 0, 0),
            ):
                who = (name, profile)
                since = end - rests.get(who, end - timedelta(days=9))
                if not is_open.get(who) and fires and since >= timedelta(minutes=pause):
                    is_open[who] = True
                    now.append((name, profile, "fired", end))
                elif is_open.get(who) and ends:
                    is_open[who], rests[who] = False, end
                    now.append((name, profile, "resolved", end))
        found += sorted(now)
    return found


def test_each_episode_is_there_once_however_it_is_looked_at(lakes: Lakes) -> None:
    """Random batches over half a day; one lake is looked at after some of them and by processes
    that remember nothing, the same lake once at the end."""
    lake = lakes.new(alerts=[BUSY, MANY, ZERO])
    lake.feed(views("p0", "06:00"))
    Episodes(lake.lake).look()
    draw, end = random.Random(3), at("06:00")
    for batch in range(8):
        end += timedelta(minutes=draw.choice((1, 9, 40, 70)))
        times = [end - timedelta(minutes=draw.choice((0, 0, 2, 50))) for _ in range(5)]
        events = [(None, f"p{draw.randint(0, 2)}", "g", "view", time) for time in times]
        lake.feed(events)
        if batch % 3 == 1:
            assert Episodes(lake.lake).look() >= 0
            assert Episodes(lake.lake).look() == 0
    Episodes(lake.lake).look()
    wanted = expected(lake)
    assert changes(lake) == wanted
    assert {(name, state) for name, _, state, _ in wanted} >= {
        ("BUSY", "resolved"),
        ("MANY", "resolved"),
        ("ZERO", "resolved"),
    }
    episodes = lake.spark.sql(
        "SELECT count(DISTINCT episode), count_if(state = 'fired') FROM engagement_alerts"
    )
    ((of_all, fired),) = episodes.collect()
    assert of_all == fired


@pytest.mark.parametrize("point", ALERT_POINTS)
def test_killed_anywhere_an_episode_fires_once(
    lakes: Lakes, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lakes.new(alerts=[BUSY])
    lake.feed(views("p1", "10:00"))
    Episodes(lake.lake).look()
    lake.feed(views("p1", "10:01", "10:02"))
    failpoints._reached.clear()
    monkeypatch.setenv(failpoints.VARIABLE, point)
    with pytest.raises(Injected):
        Episodes(lake.lake).look()
    monkeypatch.delenv(failpoints.VARIABLE)
    lake.feed(views("p1", "10:03"))
    Episodes(lake.lake).look()
    assert changes(lake) == [("BUSY", "p1", "fired", at("10:03"))]


def test_of_two_who_look_at_the_same_one_writes(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one knows what it has not written, and looks again."""
    lake = lakes.new(alerts=[BUSY])
    lake.feed(views("p1", "10:00", "10:01", "10:02"))
    second, late = Episodes(lake.lake), "tidemill.pipeline.alerts.episodes.reach"

    def first_looks(point: str) -> None:
        if point == "alerts.looked":
            monkeypatch.undo()
            Episodes(lake.lake).look()
            lake.feed(views("p2", "10:02", "10:03", "10:04"))

    monkeypatch.setattr(late, first_looks)
    second.look()
    second.look()
    assert changes(lake) == [
        ("BUSY", "p1", "fired", at("10:03")),
        ("BUSY", "p2", "fired", at("10:05")),
    ]


def test_a_rule_that_is_new_sees_gold_as_it_is_and_one_that_is_gone_ends(lakes: Lakes) -> None:
    lake = lakes.new(alerts=[BUSY])
    lake.feed(views("p1", "10:00", "10:01", "10:02", "10:03"))
    Episodes(lake.lake).look()
    lake.feed(views("p2", "10:05"))
    with_rules(lake, BUSY, MANY).look()
    assert changes(lake)[1:] == [("MANY", "p1", "fired", at("10:06"))]
    with_rules(lake, {**MANY, "when": "view_count_1h > 5", "until": "view_count_1h < 5"}).look()
    assert with_rules(lake).look() == 0
    assert changes(lake)[2:] == [
        ("BUSY", "p1", "resolved", at("10:06")),
        ("MANY", "p1", "resolved", at("10:06")),
    ]
    with_rules(lake, BUSY).look()
    assert changes(lake)[-1] == ("MANY", "p1", "resolved", at("10:06"))  # BUSY has its cool-down
    with_rules(lake, {"name": "BUSY", "when": BUSY["when"]}).look()
    fired = [change for change in changes(lake) if change[2] == "fired"]
    assert fired[-1] == ("BUSY", "p1", "fired", at("10:06"))


def test_a_view_without_rules_is_not_looked_for_again(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody's ledger is of it, so the whole log of the table would be read each time."""
    lake = lakes.new(alerts=[BUSY])
    lake.feed(views("p1", "10:00", "10:01", "10:02"))
    Episodes(lake.lake).look()
    asked: list[str] = []

    def counted(of: Lake, view: FeatureView) -> episodes.Looked:
        asked.append(view.name)
        return looked(of, view)

    looked = episodes.looked
    monkeypatch.setattr(episodes, "looked", counted)
    without = with_rules(lake)
    without.look()  # ends what BUSY has begun
    assert changes(lake)[-1] == ("BUSY", "p1", "resolved", at("10:03"))
    asked.clear()
    lake.feed(views("p1", "10:05"))
    assert [without.look() for _ in range(3)] == [0, 0, 0]
    assert asked == ["engagement"]


def test_a_key_that_gold_has_no_more_has_no_alert(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told by gold's changes; and where those are gone, by gold as it is."""
    rows = {**lakes.declared(), "when_empty": "delete"}
    lake = lakes.new(views=[rows], alerts=[BUSY])
    for day in ("19", "20", "21"):
        lake.feed(views(f"p{day}", *(f"{day}T06:0{n}" for n in range(3))))
        if day == "21":
            monkeypatch.setattr(served_versions, "_feed", lambda *_: None)
        if day != "20":
            Episodes(lake.lake).look()
    said = [(profile, state) for _, profile, state, _ in changes(lake)]
    assert said[0] == ("p19", "fired")
    assert sorted(said[1:]) == [("p19", "resolved"), ("p21", "fired")]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([{"name": "A", "when": "view_cout_1h > 1"}], "view_cout_1h.*did you mean 'view_count_1h'"),
        ([{"name": "A", "when": "view_count_1h"}], "is no condition"),
        ([{"name": "A"}], "alert A has no rule: when, or no_events"),
        ([{"name": "A", "no_events": "1h", "when": "TRUE"}], "takes no 'when'"),
        ([{"name": "A", "no_events": "1h", "view": "engagement"}], "takes no 'view'"),
        ([{"name": "A", "no_events": "soon"}], "'soon' is no length of time"),
        ([{"name": "A", "when": "true", "until": "current_date() > '2026-01-01'"}], "is not taken"),
        ([BUSY, BUSY], "BUSY is declared twice"),
        ([{**BUSY, "view": "engagemnt"}], "unknown view 'engagemnt'.*engagement"),
        ([{**BUSY, "cooldown": "soon"}], "is no length of time"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(rules: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load("engagement").overridden({"alerts": rules})


@pytest.mark.stream
def test_a_run_raises_them_and_the_command_lists_them(
    small: Small, children: Children, tmp_path: Path
) -> None:
    """A lake with a past gets rules by its file; a run without new events looks."""
    small = small.copy_all(tmp_path)
    file = tmp_path / "engagement.yaml"
    text = (Path(tidemill.__file__).parent / "config/shipped/engagement.yaml").read_text()
    rules = "alerts:\n  - {name: SEEN, when: view_count_1d > 0}\n"
    file.write_text(text.replace("views:\n", f"{rules}views:\n", 1))
    words = ("--source", "files", "--input", small.input, "--once", "--root", small.root)
    assert children.tidemill("run", file, *words).ended() == 0
    lake = tidemill.open_lake(small.root, pipeline=str(file))
    gold = DeltaTable(str(small.root / "engagement_features")).to_pyarrow_table().to_pylist()
    keys = {(row["profile_id"], row["gti"]) for row in gold if row["view_count_1d"] > 0}
    found = lake.alerts()
    assert {(one["key"]["profile_id"], one["key"]["gti"]) for one in found} == keys
    assert {one["fired_at"] for one in found} == {"2026-11-21T11:31:00Z"}
    listed = children.tidemill("alerts", file, "--root", small.root)
    assert listed.ended() == 0
    assert listed.out.read_text().count("SEEN") == len(keys)
