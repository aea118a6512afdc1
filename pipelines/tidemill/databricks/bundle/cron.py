"""Quartz expressions, as schedules have them: seconds first, one of the two days a `?`."""

from __future__ import annotations

import re

FIELDS = {
    "seconds": (0, 59),
    "minutes": (0, 59),
    "hours": (0, 23),
    "day of month": (1, 31),
    "month": (1, 12),
    "day of week": (1, 7),
    "year": (1970, 2099),
}
NAMES = {
    "month": "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(),
    "day of week": "SUN MON TUE WED THU FRI SAT".split(),
}
SPECIAL = {
    "day of month": re.compile(r"\?|L(-\d+)?W?|\d+W"),
    "day of week": re.compile(r"\?|L|\d?L|\d#[1-5]"),
}


def wrong(expression: str) -> str | None:
    """Return what is wrong with a Quartz expression, None when nothing is."""
    parts = expression.split()
    if len(parts) not in (6, 7):
        return f"has {len(parts)} fields, not 6 or 7"
    for (name, (low, high)), part in zip(FIELDS.items(), parts, strict=False):
        for item in part.upper().split(","):
            if not _fits(name, item, low, high):
                return f"{item!r} is no {name}"
    if (parts[3] == "?") == (parts[5] == "?"):
        return "one of day of month and day of week is ?, the other not"
    return None


def _fits(name: str, item: str, low: int, high: int) -> bool:
    if name in SPECIAL and SPECIAL[name].fullmatch(item):
        return True
    span, _, step = item.partition("/")
    if (step and not (step.isdigit() and 1 <= int(step) <= high)) or item.endswith("/"):
        return False
    if span == "*":
        return True
    numbers = [_number(name, word, low) for word in span.split("-")]
    return len(numbers) <= 2 and all(n is not None and low <= n <= high for n in numbers)


def _number(name: str, word: str, low: int) -> int | None:
    if word.isdigit():
        return int(word)
    return NAMES[name].index(word) + low if word in NAMES.get(name, []) else None
