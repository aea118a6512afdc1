"""One form of a value, in whatever it is printed."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from tidemill.query.explain import plain as explained
from tidemill.query.export import as_csv
from tidemill.query.json_values import json_of, plain, text_of

TEXTS = [
    (datetime(2026, 11, 21, 10, 5, tzinfo=timezone.utc), "2026-11-21T10:05:00Z"),
    (datetime(2026, 11, 21, 10, 5, 0, 500, tzinfo=timezone.utc), "2026-11-21T10:05:00.000500Z"),
    (datetime(2026, 11, 21, 12, tzinfo=timezone(timedelta(hours=2))), "2026-11-21T10:00:00Z"),
    (datetime(2026, 11, 21, 10, 5), "2026-11-21T10:05:00"),  # noqa: DTZ001
    (date(2026, 11, 21), "2026-11-21"),
    (time(10, 5), "10:05:00"),
    (Decimal("1.50"), "1.50"),
    (Decimal("0E-9"), "0.000000000"),
    (Decimal("1E+2"), "100"),
    (b"\x00\xff", "AP8="),
    (bytearray(b"\x00\xff"), "AP8="),
    (timedelta(days=1), "1 day, 0:00:00"),
]


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=str)
def test_a_value_is_the_same_text_everywhere(value: object, text: str) -> None:
    assert text_of(value) == text
    assert json.loads(json_of({"a": [value]})) == {"a": [text]}
    key = bytes(value) if isinstance(value, bytearray) else value
    assert json.loads(json_of(plain({key: value}))) == {text: text}
    assert as_csv(["a"], [plain([value])]).splitlines()[1] == (f'"{text}"' if "," in text else text)
    (nested,) = as_csv(["a"], [[[value]]]).splitlines()[1:]
    assert json.loads(nested[1:-1].replace('""', '"')) == [text]


@pytest.mark.parametrize("value", [None, True, 1, 0.5, "é", "a\u202eb"])
def test_what_json_has_stays(value: object) -> None:
    assert plain(value) is value and explained(value) is value
    assert json.loads(json_of(value)) == value


def test_a_decimal_stays_a_number_until_it_is_printed() -> None:
    assert plain([Decimal("0E-9")]) == [Decimal("0E-9")]


def test_explain_names_fields_and_counts_bytes() -> None:
    for value, text in TEXTS[:5]:
        assert explained({"a": [value]}) == {"a": [text]}
    assert explained([b"\x00\xff", Decimal("0E-9")]) == ["2 bytes", "0.000000000"]


def test_json_shows_control_characters_and_letters() -> None:
    assert json_of("é\x1b\u202e") == '"é\\u001b\\u202e"'
    assert json_of({"a": 1}, indent=2) == '{\n  "a": 1\n}'
