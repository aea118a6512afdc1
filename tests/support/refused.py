"""Records of engagement, and each way to be refused: the text and its reasons."""

from __future__ import annotations

import json

GOOD = {
    "event_id": "e",
    "profile_id": "p",
    "gti": "g",
    "event_type": "view",
    "event_timestamp": "2026-11-21T10:00:00Z",
}
TIME = "event_timestamp"


def record(**words: object) -> str:
    return json.dumps({**GOOD, **words})


def without(*names: str) -> str:
    return json.dumps({name: value for name, value in GOOD.items() if name not in names})


def timed(text: object) -> str:
    return record(event_timestamp=text)


def nested(depth: int) -> str:
    return record()[:-1] + ', "x": ' + "[" * depth + "]" * depth + "}"


REFUSED: list[tuple[str | None, list[str]]] = [
    (None, ["malformed"]),
    ("", ["malformed"]),
    ("{bad", ["malformed"]),
    ('{"a": 1} x', ["malformed"]),
    ('{"a": 1}{"b": 2}', ["malformed"]),
    (record() + "]", ["malformed"]),
    (record() + "] {}", ["malformed"]),
    (record() + "}, {", ["malformed"]),
    (record() + ", " + record(), ["malformed"]),
    ('{"gti": "a", "gti": "b"}', ["malformed"]),
    ('{"gti": "a\x00b"}', ["malformed"]),
    (nested(2000), ["malformed"]),
    ("[1]", ["not_an_object"]),
    ("3", ["not_an_object"]),
    ('"text"', ["not_an_object"]),
    ("null", ["not_an_object"]),
    (without("gti"), ["missing:gti"]),
    (record(gti=None), ["missing:gti"]),
    ("{}", [f"missing:{TIME}", "missing:event_type", "missing:gti", "missing:profile_id"]),
    (record(gti=""), ["empty:gti"]),
    (record(event_type=""), ["empty:event_type"]),
    (record(profile_id=5), ["wrong_type:profile_id"]),
    (record(profile_id={"a": 1}), ["wrong_type:profile_id"]),
    (record(profile_id=["a"]), ["wrong_type:profile_id"]),
    (record(profile_id=True), ["wrong_type:profile_id"]),
    (record(event_id=5), ["wrong_type:event_id"]),
    (record(event_timestamp=True), [f"wrong_type:{TIME}"]),
    (record(event_timestamp={}), [f"wrong_type:{TIME}"]),
    (record(gti="x" * 1025), ["too_long:gti"]),
    (record(gti="x" * 1_000_000), ["too_long:gti"]),
    (record(gti="a\x00b"), ["control_character:gti"]),
    (record(gti="a\nb"), ["control_character:gti"]),
    (record(event_type="Select"), ["unknown_value:event_type"]),
    (record(event_type="click"), ["unknown_value:event_type"]),
    (without(TIME), [f"missing:{TIME}"]),
    (timed("text"), [f"bad_time:{TIME}"]),
    (timed(""), [f"bad_time:{TIME}"]),
    (timed("12:30"), [f"bad_time:{TIME}"]),
    (timed("2026"), [f"bad_time:{TIME}"]),
    (timed("2026-11-21"), [f"bad_time:{TIME}"]),
    (timed("2026-13-21T10:00:00Z"), [f"bad_time:{TIME}"]),
    (timed("2026-02-30T10:00:00Z"), [f"bad_time:{TIME}"]),
    (timed("2026-11-21T25:00:00Z"), [f"bad_time:{TIME}"]),
    (timed("2026-11-21T10:00:00+19:00"), [f"bad_time:{TIME}"]),
    (timed("2026-11-21T10:00:00Z\n"), [f"bad_time:{TIME}"]),
    (timed("2026-11-21t10:00:00z"), [f"bad_time:{TIME}"]),
    (timed("1763719200123"), [f"bad_time:{TIME}"]),
    (timed(0), [f"bad_time:{TIME}"]),
    (timed(-5), [f"bad_time:{TIME}"]),
    (timed(1.5), [f"bad_time:{TIME}"]),
    (timed(1763719200123.0), [f"bad_time:{TIME}"]),
    (timed(10**25), [f"bad_time:{TIME}"]),
    (record()[:-1] + ', "x": 1e400}', []),
    (timed(10**17), ["in_future"]),
    (timed("9999-01-01T00:00:00Z"), ["in_future"]),
    (timed("2026-11-21T12:05:00.001Z"), ["in_future"]),
    (timed("2026-11-21T12:05:00Z"), []),
    (timed(1763719200), ["too_old"]),  # seconds, so 1970
    (timed("2025-10-17T11:59:59Z"), ["too_old"]),  # 400 days before NOW are 2025-10-17 12:00
    (timed("2025-10-17T12:00:00Z"), []),
    (
        json.dumps({"profile_id": 5, "gti": "", "event_type": "x", TIME: "x", "event_id": ""}),
        [
            f"bad_time:{TIME}",
            "empty:event_id",
            "empty:gti",
            "unknown_value:event_type",
            "wrong_type:profile_id",
        ],
    ),
]
