"""What a view declares, and the columns and statements that follow."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tidemill.config.pipeline_file import load
from tidemill.errors import DefinitionError
from tidemill.features import FeatureView, Window, count
from tidemill.lake.statements import statement


def declare(**words: object) -> FeatureView:
    by_type = count().by("event_type", ["select", "view"]).over("1h", "1d")
    given = {"name": "v", "keys": ["k"], "event_time": "t", "features": [by_type]}
    return FeatureView(**{**given, **words})  # type: ignore[arg-type]


def test_gold_has_the_longest_window_first_whatever_order_was_given() -> None:
    one, other = (
        declare(features=[count().by("event_type", ["select", "view"]).over(*windows)])
        for windows in (["1h", "1d", "12h"], ["1d", "12h", "1h"])
    )
    names = [column.name for column in one.columns]
    assert names[:4] == ["select_count_1d", "view_count_1d", "select_count_12h", "view_count_12h"]
    assert names == [column.name for column in other.columns]
    assert one.definition == other.definition


def test_the_shipped_file_says_what_python_says() -> None:
    by_type = count().by("event_type", ["select", "highlight", "view"]).over("1h", "12h", "1d")
    view = FeatureView(
        name="engagement",
        keys=["profile_id", "gti"],
        event_time="event_timestamp",
        features=[by_type],
    )
    assert load("engagement").views == (view,)


def test_when_empty_and_a_value_make_another_definition() -> None:
    hashes = {
        declare().definition,
        declare(when_empty="delete").definition,
        declare(features=[count().by("event_type", ["select"]).over("1h", "1d")]).definition,
        declare(features=[count().over("1h")]).definition,
    }
    assert len(hashes) == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"keys": ["k; DROP TABLE x"]}, "not an identifier"),
        ({"keys": ["k", "K"]}, "declared twice"),
        ({"keys": []}, "at least 1 item"),
        ({"keys": ["batch"]}, "Tidemill's own names"),
        ({"keys": ["topic"]}, "Tidemill's own names"),
        ({"schema": {"event_type": "string"}}, "unknown column 'k'"),
        ({"schema": {"k": "string", "event_typ": "string"}}, "did you mean 'event_typ'"),
        ({"schema": {"k": "string", "event_type": "bigint"}}, "takes a string column"),
        ({"schema": {"k": "string", "event_type": "string", "t": "string"}}, "leave it out"),
        ({"features": [count()]}, "no windows"),
        ({"features": [count().over("1h", "60m")]}, None),
        ({"features": [count().over("1h"), count().over("1h")]}, "declared twice"),
        ({"when_empty": "keep"}, "'zero' or 'delete'"),
        ({"colour": "red"}, "Extra inputs"),
    ],
)
def test_a_wrong_view_is_refused(words: dict, message: str | None) -> None:
    if message is None:
        assert len(declare(**words).columns) == 2, "the same length under two names is two columns"
        return
    with pytest.raises(ValidationError, match=message):
        declare(**words)


@pytest.mark.parametrize("text", ["", "1", "h", "0h", "-1h", "1.5h", "31d", "9999999999d"])
def test_no_window(text: str) -> None:
    with pytest.raises(DefinitionError):
        Window.parse(text)


@pytest.mark.parametrize(
    ("text", "minutes"), [("1m", 1), ("60s", 1), ("90s", 1), ("12h", 720), ("30d", 43200)]
)
def test_windows(text: str, minutes: int) -> None:
    assert Window.parse(text).minutes == minutes


def test_a_value_cannot_leave_its_quotes() -> None:
    with pytest.raises(ValidationError, match="not an identifier"):
        count().by("event_type", ["x' OR '1'='1"])


def test_statements_name_only_what_is_declared() -> None:
    text = statement("features", declare())
    assert "FROM v_buckets" in text and "INTERVAL '1500' MINUTE" in text
    assert "$" not in text and "AS view_count_1d" in text


def test_a_merge_takes_only_the_clauses_it_needs() -> None:
    assert statement("merge", declare()).count("WHEN ") == 3
    only = statement("merge", declare(), clauses={"insert"})
    assert "WHEN NOT MATCHED" in only and "WHEN MATCHED" not in only
