from __future__ import annotations

import hashlib
import json
from collections import Counter
from datetime import datetime, timedelta, timezone

import pytest

from tidemill.sources.generator.kinds import KINDS
from tidemill.sources.generator.mix import DEFAULT_MIX, Mix
from tidemill.sources.generator.records import minute_records, records_before

START = datetime(2026, 11, 20, 8, tzinfo=timezone.utc)
PLAIN = Mix(late=0, duplicate=0, malformed=0, future=0)
NAMES = {"highlight", "select", "view"}


def records(minutes: int, mix: Mix = DEFAULT_MIX, rate: int = 500) -> list[list[str]]:
    return [minute_records(7, START, minute, rate, mix) for minute in range(minutes)]


def events(lines: list[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines]


def times(minutes: list[list[str]]) -> list[tuple[int, datetime]]:
    found = []
    for minute, lines in enumerate(minutes):
        for event in events(lines):
            found.append((minute, moment(event["event_timestamp"])))
    return found


def moment(when: object) -> datetime:
    if isinstance(when, int):
        return datetime.fromtimestamp(when / 1000, timezone.utc)
    return datetime.fromisoformat(str(when).replace("Z", "+00:00"))


def minutes_old(minute: int, when: datetime) -> int:
    """0 is the record's own minute, 1 the one before."""
    return minute - (when - START) // timedelta(minutes=1)


def test_the_records_are_these_on_any_machine_and_version():
    lines = [line for minute in records(10, rate=50) for line in minute]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
    assert lines[0] == (
        '{"event_id":"7-29919360-0","profile_id":"profile-181","gti":"title-1",'
        '"event_type":"highlight","event_timestamp":"2026-11-20T08:00:10.352Z"}'
    )
    assert digest == "87dc86ad8a45"


@pytest.mark.parametrize(
    ("kind", "digest"),
    [
        ("cards", "d08d286b8dd0"),
        ("devices", "fc51e69551be"),
        ("ads", "1d6b73cb13bb"),
        ("products", "db9ef18b75b0"),
        ("purchases", "3038da5485c5"),
        ("customers", "d8cb2821dc6b"),
    ],
)
def test_so_are_the_records_of_any_kind(kind: str, digest: str):
    minutes = (minute_records(7, START, minute, 50, events=kind) for minute in range(10))
    lines = [line for minute in minutes for line in minute]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12] == digest


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_share_of_what_is_not_plain(kind: str):
    mix = Mix(late=0.2, duplicate=0.1, malformed=0.1, future=0.1)
    minutes = [minute_records(7, START, minute, 500, mix, kind) for minute in range(40)]
    lines = [line for minute in minutes for line in minute]
    assert 0.05 < 1 - len(set(lines)) / len(lines) < 0.12
    years = Counter(when.year for when in map(_time, lines) if when)
    assert 0.08 < years[2099] / len(lines) < 0.12
    late = [
        when
        for minute, of_minute in enumerate(minutes)
        for when in map(_time, dict.fromkeys(of_minute))
        if when and when < START + timedelta(minutes=minute - 30)
    ]
    assert 0.05 < len(late) / len(lines) < 0.2


def _time(line: str) -> datetime | None:
    try:
        return moment(list(json.loads(line).values())[-1])
    except ValueError:
        return None


def test_another_seed_is_another_stream():
    assert minute_records(7, START, 0, 50) != minute_records(8, START, 0, 50)


@pytest.mark.parametrize("rate", [1, 7, 500])
def test_the_rate_is_the_mean_of_a_day(rate: int):
    assert records_before(START, 1440, rate) == 1440 * rate


def test_positions_follow_on_each_other():
    for minute in range(5):
        here = records_before(START, minute, 37)
        assert records_before(START, minute + 1, 37) == here + len(
            minute_records(7, START, minute, 37)
        )


def test_evenings_are_busier_than_nights():
    night, evening = (
        records_before(START, m + 60, 100) - records_before(START, m, 100)
        for m in (19 * 60, 12 * 60)
    )
    assert evening > 4 * night


def test_plain_events_lie_in_their_minute_in_no_order():
    minutes = records(3, PLAIN)
    found = times(minutes)
    assert all(minutes_old(minute, when) == 0 for minute, when in found)
    first = [when for minute, when in found if minute == 0]
    assert first != sorted(first)


def test_events_have_the_five_fields_and_some_times_as_a_number():
    found = events([line for minute in records(5, PLAIN) for line in minute])
    fields = {"event_id", "profile_id", "gti", "event_type", "event_timestamp"}
    assert all(set(event) == fields for event in found)
    assert 0.07 < sum(isinstance(e["event_timestamp"], int) for e in found) / len(found) < 0.13
    types = Counter(str(event["event_type"]) for event in found)
    assert set(types) == NAMES
    assert types["highlight"] > types["select"] > types["view"]


def test_keys_are_skewed():
    keys = Counter(
        (e["profile_id"], e["gti"])
        for e in events([line for minute in records(60, PLAIN) for line in minute])
    )
    (_, most), *_ = keys.most_common(1)
    assert most > 50 * sum(keys.values()) / len(keys)
    assert len(keys) > 3_000


def test_late_events_are_one_minute_to_three_hours_old():
    found = times(records(5, Mix(late=1, duplicate=0, malformed=0, future=0)))
    ages = [minutes_old(minute, when) for minute, when in found]
    assert min(ages) >= 1
    assert 120 < max(ages) <= 180
    assert sorted(ages)[len(ages) // 2] < 60


def test_future_events_carry_2099():
    found = times(records(2, Mix(late=0, duplicate=0, malformed=0, future=1)))
    assert {when.year for _, when in found} == {2099}


def test_a_duplicate_repeats_an_earlier_text_of_the_last_half_hour():
    minutes = records(60, Mix(late=0.03, duplicate=0.05, malformed=0, future=0))
    seen: dict[str, int] = {}
    distances = []
    for minute, lines in enumerate(minutes):
        for line in lines:
            if line in seen:
                distances.append(minute - seen[line])
            seen.setdefault(line, minute)
    assert 0.04 < len(distances) / sum(map(len, minutes)) < 0.06
    assert min(distances) == 0
    assert 20 < max(distances) <= 30
    ids = Counter(str(json.loads(line)["event_id"]) for line in seen)
    assert set(ids.values()) == {1}, "an id promises equal content"


def test_malformed_records_have_one_of_five_faults():
    faults: Counter[str] = Counter()
    for minute in records(5, Mix(late=0, duplicate=0, malformed=1, future=0)):
        for line in minute:
            faults[_fault(line)] += 1
    assert set(faults) == {"broken", "unknown type", "no gti", "empty key", "wrong type"}
    assert min(faults.values()) > sum(faults.values()) / 10


def _fault(line: str) -> str:
    try:
        event = json.loads(line)
    except ValueError:
        return "broken"
    if event["event_type"] not in NAMES:
        return "unknown type"
    if "gti" not in event:
        return "no gti"
    return "empty key" if event["profile_id"] == "" else "wrong type"


def test_default_shares():
    lines = [line for minute in records(120) for line in minute]
    repeated = len(lines) - len(set(lines))
    assert 0.007 < repeated / len(lines) < 0.012
    assert 0.0002 < sum('"2099-' in line for line in lines) / len(lines) < 0.0009
