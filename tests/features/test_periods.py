"""Windows that begin with a day, a week ... of the calendar, or with a tumbling period."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.errors import DefinitionError
from tidemill.features import FeatureView, Window, count, distinct

DAY = {"calendar": "day"}
BERLIN = {**DAY, "zone": "Europe/Berlin"}


def time(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}:00+00:00")


STARTS: list[tuple[dict[str, str] | str, str, str]] = [
    (DAY, "2026-11-21T10:05", "2026-11-21T00:00"),
    (DAY, "2026-11-21T00:00", "2026-11-21T00:00"),
    (BERLIN, "2026-10-24T21:59", "2026-10-23T22:00"),
    (BERLIN, "2026-10-24T22:00", "2026-10-24T22:00"),  # the day of 25 hours
    (BERLIN, "2026-10-25T22:59", "2026-10-24T22:00"),
    (BERLIN, "2026-10-25T23:00", "2026-10-25T23:00"),
    (BERLIN, "2026-03-29T21:59", "2026-03-28T23:00"),  # the day of 23 hours
    (BERLIN, "2026-03-29T22:00", "2026-03-29T22:00"),
    ({**DAY, "zone": "America/Havana"}, "2026-11-01T05:30", "2026-11-01T04:00"),  # 00:30 again
    ({**DAY, "zone": "Asia/Beirut"}, "2026-03-28T22:10", "2026-03-28T22:00"),  # no 00:00 there
    ({**DAY, "zone": "Asia/Kolkata"}, "2026-11-21T18:29", "2026-11-20T18:30"),
    ({**BERLIN, "calendar": "week"}, "2026-10-25T22:59", "2026-10-18T22:00"),
    ({**BERLIN, "calendar": "week"}, "2026-10-25T23:00", "2026-10-25T23:00"),  # a Monday
    ({**BERLIN, "calendar": "month"}, "2026-10-31T22:59", "2026-09-30T22:00"),
    ({**BERLIN, "calendar": "quarter"}, "2026-12-31T22:59", "2026-09-30T22:00"),
    ({**BERLIN, "calendar": "year"}, "2026-12-31T22:59", "2025-12-31T23:00"),
    ({"tumbling": "15m"}, "2026-11-21T10:14", "2026-11-21T10:00"),
    ({"tumbling": "15m"}, "2026-11-21T10:15", "2026-11-21T10:15"),
    ("lifetime", "2026-11-25T23:59", "1900-01-01T00:00"),
    ({"tumbling": "7d"}, "2026-11-25T23:59", "2026-11-19T00:00"),  # weeks since a Thursday
]


@pytest.mark.parametrize(("said", "as_of", "start"), STARTS)
def test_where_it_starts(said: dict[str, str] | str, as_of: str, start: str) -> None:
    window = Window.parse(said)
    assert window.start(time(as_of)) == time(start)
    assert time(as_of) - time(start) <= window.reach


def test_an_offset_is_the_same_window_earlier() -> None:
    """At 10:00 on Monday, what of Sunday was over at 10:00: a day of 25 hours."""
    window = Window.parse(BERLIN).earlier("1d")
    assert window.start(time("2026-10-26T09:00")) == time("2026-10-24T22:00")
    assert window.text == "day_to_date_1d_ago"
    assert window.bounds() == "[start of the day of as_of - 1d in Europe/Berlin, as_of - 1d)"


def declare(*features: Any, **words: Any) -> FeatureView:
    given = {"name": "v", "keys": ["k"], "event_time": "at", "schema": {"k": "string"}}
    return FeatureView(**{**given, "features": features, **words})


def test_a_file_says_what_python_says() -> None:
    view = declare(count().over("1h", BERLIN, {"tumbling": "2h"}), distinct("k").over(DAY))
    again = FeatureView.model_validate(yaml.safe_load(yaml.safe_dump(view.words())))
    assert again == view
    assert again.definition == view.definition
    assert {column.name for column in view.shown} == {
        "count_1h",
        "count_day_to_date",
        "count_tumbling_2h",
        "k_distinct_day_to_date",
    }
    assert [f["over"] for f in view.words()["features"]] == [
        ["1h", BERLIN, {"tumbling": "2h"}],
        [DAY],
    ]


def test_a_lifetime_needs_no_history_but_its_offset_s() -> None:
    view = declare(count().over("lifetime", "3h"), history="12h")
    assert FeatureView.model_validate(yaml.safe_load(yaml.safe_dump(view.words()))) == view
    assert [column.name for column in view.shown] == ["count_lifetime", "count_3h"]
    assert view.shown[0].window.bounds() == "before as_of"
    assert view.apart == timedelta(hours=3)
    declare(count().over("lifetime").offset("12h"), history="12h")
    with pytest.raises(ValueError, match="history 12h is shorter than lifetime_13h_ago"):
        declare(count().over("lifetime").offset("13h"), history="12h")


@pytest.mark.parametrize(
    ("publish", "message"),
    [
        ({"ttl": "400d"}, "publish: ttl 400d would lose the lifetimes of v: leave it out"),
        ({"slices": True}, "publish: slices have an end, and v has lifetimes"),
    ],
)
def test_what_cannot_publish_a_lifetime(publish: dict[str, Any], message: str) -> None:
    words = {
        "pipeline": "p",
        "source": {"kind": "files"},
        "views": [declare(count().over("lifetime"))],
    }
    PipelineDefinition(**words, publish={})
    with pytest.raises(ValueError, match=message):
        PipelineDefinition(**words, publish=publish)


def test_the_zone_is_of_the_definition() -> None:
    other = {**DAY, "zone": "Europe/London"}
    assert declare(count().over(BERLIN)).definition != declare(count().over(other)).definition


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"calendar": "dya"}, "'dya' is no period of the calendar; did you mean 'day'?"),
        ({**DAY, "zone": "Europe/Berlni"}, "did you mean 'Europe/Berlin'?"),
        ({**DAY, "zone": "EST"}, "unknown time zone 'EST' (expected: UTC, or a name such as"),
        ({**DAY, "zone": "Europe/Berlin'); DROP"}, "unknown time zone"),
        ({**DAY, "hour": "6"}, "is no window (expected: {tumbling: 1h}, or {calendar: day,"),
        ({"zone": "UTC"}, "is no window"),
        ({"tumbling": "soon"}, "'soon' is no length of time"),
    ],
)
def test_what_is_no_window(said: dict[str, str], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Window.parse(said)
    assert message in str(caught.value)


def test_a_period_begins_with_a_bucket() -> None:
    declare(count().over(BERLIN), bucket="1h")
    kolkata = {**DAY, "zone": "Asia/Kolkata"}
    declare(count().over(kolkata), bucket="30m")
    with pytest.raises(ValueError, match="'day_to_date' does not begin with a bucket of 1h"):
        declare(count().over(kolkata), bucket="1h")
    with pytest.raises(ValueError, match="'tumbling_90s' does not begin with a bucket of 1m"):
        declare(count().over({"tumbling": "90s"}))
    with pytest.raises(ValueError, match="history 20d is shorter than month_to_date"):
        declare(count().over({"calendar": "month"}), history="20d")


def test_two_zones_need_two_names() -> None:
    london = {**DAY, "zone": "Europe/London"}
    with pytest.raises(ValueError, match="'count_day_to_date' is declared twice"):
        declare(count().over(BERLIN, london))
    declare(count().over(BERLIN), count().over(london).named("british"))
