"""Made-up records of any kind: the same (seed, minute, index) is the same record, on any machine.

Every record is drawn from a hash of where it stands, not from a running generator of random
numbers. So a minute needs no minute before it, and a duplicate finds its original by itself.
"""

from __future__ import annotations

import re
import struct
from datetime import datetime, timezone
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate

from tidemill.sources.generator.kinds import ENGAGEMENT, KINDS, Kind
from tidemill.sources.generator.mix import (
    DEFAULT_MIX,
    DUPLICATE,
    EVENT,
    FUTURE,
    LATE,
    MALFORMED,
    Mix,
)

MINUTE_MS = 60_000
LATEST_MS = 180 * MINUTE_MS
DAY = 1440
REPEAT_WITHIN = 30
"""A duplicate comes at most so many minutes after its original."""

HOURLY = (
    *(70, 50, 35, 30, 30, 40, 60, 80, 90, 95, 95, 100),
    *(110, 110, 105, 105, 110, 125, 150, 175, 190, 185, 150, 110),
)
"""Records in each hour of the UTC day, in per cent of the mean; minutes lie on the line between."""

UNIT = 60 * 100
"""The mean of PER_MINUTE."""

PER_MINUTE = [
    HOURLY[hour] * (60 - minute) + HOURLY[(hour + 1) % 24] * minute
    for hour in range(24)
    for minute in range(60)
]
BEFORE_MINUTE = tuple(accumulate(PER_MINUTE, initial=0))
IN_2099 = int(datetime(2099, 1, 1, tzinfo=timezone.utc).timestamp()) // 60
FRAME = 8
"""Numbers that every record is drawn from; the first three of its fields are among them."""


def minute_records(
    seed: int,
    start: datetime,
    minute: int,
    rate: int,
    mix: Mix = DEFAULT_MIX,
    events: str = ENGAGEMENT,
) -> list[str]:
    """Return the raw payloads of one minute, counted from `start`, in the order they arrive.

    The mean over a day is `rate` a minute. Within the minute event times are in no order.
    `events` names their kind.
    """
    first, kind = epoch_minute(start), KINDS[events]
    at = first + minute
    return [_record(kind, seed, first, at, index, rate, mix) for index in range(_count(rate, at))]


def records_before(start: datetime, minute: int, rate: int) -> int:
    """Return how many records the minutes before `minute` hold: the position of its first one."""
    first = epoch_minute(start)
    return _total(rate, first + minute) - _total(rate, first)


def epoch_minute(at: datetime) -> int:
    """Return the minutes between 1970 and `at`, the rest cut."""
    return int(at.timestamp() // 60)


def _total(rate: int, at: int) -> int:
    days, minute = divmod(at, DAY)
    return rate * (days * DAY * UNIT + BEFORE_MINUTE[minute]) // UNIT


def _count(rate: int, at: int) -> int:
    return _total(rate, at + 1) - _total(rate, at)


def _draws(kind: Kind, seed: int, at: int, index: int) -> tuple[float, ...]:
    """Return as many numbers in [0, 1) as the kind needs, the 32-bit words of a hash, so the same
    everywhere."""
    words = FRAME + kind.numbers - 3
    digest = blake2b(b"%d:%d:%d" % (seed, at, index), digest_size=4 * words).digest()
    return tuple([word * 2**-32 for word in struct.unpack(f"<{words}L", digest)])


def _record(kind: Kind, seed: int, first: int, at: int, index: int, rate: int, mix: Mix) -> str:
    draws = _draws(kind, seed, at, index)
    fate = mix.fate(draws[0])
    if fate == DUPLICATE:
        earlier = max(first, at - int(draws[7] * (REPEAT_WITHIN + 1)))
        candidates = index if earlier == at else _count(rate, earlier)
        original = int(draws[1] * candidates)
        again = _draws(kind, seed, earlier, original)
        if candidates and mix.fate(again[0]) in (EVENT, LATE):
            return _event(kind, seed, earlier, original, again, mix)
    text = _event(kind, seed, at, index, draws, mix)
    return _spoiled(kind, text, int(draws[7] * 5)) if fate == MALFORMED else text


def _event(kind: Kind, seed: int, at: int, index: int, draws: tuple[float, ...], mix: Mix) -> str:
    second, old, older, form = draws[4:FRAME]
    fate = mix.fate(draws[0])
    minute = IN_2099 + at % DAY if fate == FUTURE else at
    millis = minute * MINUTE_MS + int(second * MINUTE_MS)
    if fate == LATE:
        millis -= MINUTE_MS + int(old * older * (LATEST_MS - MINUTE_MS))
    when = str(millis) if form < mix.epoch else f'"{_iso(millis)}"'
    fields = kind.fields(draws[1:4] + draws[FRAME:], at, mix)
    return f'{{"event_id":"{seed}-{at}-{index}",{fields},"{kind.time}":{when}}}'


def _spoiled(kind: Kind, text: str, how: int) -> str:
    """Return the text with one fault: cut off, a value strange, a field missing, empty,
    mistyped."""
    if how == 0:
        return text[: len(text) // 2]
    if how == 1:
        return re.sub(*kind.strange, text)
    if how == 2:
        return re.sub(*kind.renamed, text)
    return re.sub(rf'(?<="{kind.key}":)"[^"]*"', '""' if how == 3 else "17", text)


def _iso(millis: int) -> str:
    minute, rest = divmod(millis, MINUTE_MS)
    return f"{_iso_minute(minute)}{rest // 1000:02d}.{rest % 1000:03d}Z"


@lru_cache(maxsize=4096)
def _iso_minute(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, timezone.utc).strftime("%Y-%m-%dT%H:%M:")
