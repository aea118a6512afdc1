"""Made-up engagement records: the same (seed, minute, index) is the same record, on any machine.

Every record is drawn from a hash of where it stands, not from a running generator of random
numbers. So a minute needs no minute before it, and a duplicate finds its original by itself.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate

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

EVENT, LATE, DUPLICATE, MALFORMED, FUTURE = range(5)


@dataclass(frozen=True)
class Mix:
    """How many profiles and titles there are, and the share of records that are not plain events.

    Late events are one minute to three hours old, skewed to the young. A duplicate repeats an
    event's text in the same or a later minute. Future events carry the year 2099.
    """

    profiles: int = 1000
    titles: int = 50
    late: float = 0.03
    duplicate: float = 0.01
    malformed: float = 0.005
    future: float = 0.0005
    epoch: float = 0.1
    """Share of event times written as epoch milliseconds."""

    def kind(self, draw: float) -> int:
        """Yield what a record is, from a number in [0, 1)."""
        for kind, share in enumerate(
            (self.late, self.duplicate, self.malformed, self.future), start=LATE
        ):
            draw -= share
            if draw < 0:
                return kind
        return EVENT


DEFAULT_MIX = Mix()


def minute_records(
    seed: int, start: datetime, minute: int, rate: int, mix: Mix = DEFAULT_MIX
) -> list[str]:
    """Yield the raw payloads of one minute, counted from `start`, in the order they arrive.

    The mean over a day is `rate` a minute. Within the minute event times are in no order.
    """
    first = epoch_minute(start)
    at = first + minute
    return [_record(seed, first, at, index, rate, mix) for index in range(_count(rate, at))]


def records_before(start: datetime, minute: int, rate: int) -> int:
    """Yield how many records the minutes before `minute` hold: the position of its first one."""
    first = epoch_minute(start)
    return _total(rate, first + minute) - _total(rate, first)


def epoch_minute(at: datetime) -> int:
    """Yield the minutes between 1970 and `at`, the rest cut."""
    return int(at.timestamp() // 60)


def _total(rate: int, at: int) -> int:
    days, minute = divmod(at, DAY)
    return rate * (days * DAY * UNIT + BEFORE_MINUTE[minute]) // UNIT


def _count(rate: int, at: int) -> int:
    return _total(rate, at + 1) - _total(rate, at)


def _draws(seed: int, at: int, index: int) -> tuple[float, ...]:
    """Yield eight numbers in [0, 1): the 32-bit words of a hash, so the same everywhere."""
    digest = blake2b(b"%d:%d:%d" % (seed, at, index), digest_size=32).digest()
    return tuple([word * 2**-32 for word in struct.unpack("<8L", digest)])


def _record(seed: int, first: int, at: int, index: int, rate: int, mix: Mix) -> str:
    draws = _draws(seed, at, index)
    kind = mix.kind(draws[0])
    if kind == DUPLICATE:
        earlier = max(first, at - int(draws[7] * (REPEAT_WITHIN + 1)))
        candidates = index if earlier == at else _count(rate, earlier)
        original = int(draws[1] * candidates)
        again = _draws(seed, earlier, original)
        if candidates and mix.kind(again[0]) in (EVENT, LATE):
            return _event(seed, earlier, original, again, mix)
    text = _event(seed, at, index, draws, mix)
    return _spoiled(text, int(draws[7] * 5)) if kind == MALFORMED else text


def _event(seed: int, at: int, index: int, draws: tuple[float, ...], mix: Mix) -> str:
    what, profile, title, type_, second, old, older, form = draws
    kind = mix.kind(what)
    minute = IN_2099 + at % DAY if kind == FUTURE else at
    millis = minute * MINUTE_MS + int(second * MINUTE_MS)
    if kind == LATE:
        millis -= MINUTE_MS + int(old * older * (LATEST_MS - MINUTE_MS))
    when = str(millis) if form < mix.epoch else f'"{_iso(millis)}"'
    action = "highlight" if type_ < 0.65 else "select" if type_ < 0.9 else "view"
    return (
        f'{{"event_id":"{seed}-{at}-{index}"'
        f',"profile_id":"profile-{_zipf(profile, mix.profiles)}"'
        f',"gti":"title-{_zipf(title, mix.titles)}"'
        f',"event_type":"{action}","event_timestamp":{when}}}'
    )


def _spoiled(text: str, how: int) -> str:
    """Yield the text with one fault: cut off, or a field unknown, missing, empty, mistyped."""
    if how == 0:
        return text[: len(text) // 2]
    if how == 1:
        return text.replace('"event_type":"', '"event_type":"un')
    if how == 2:
        return text.replace('"gti":', '"title":')
    return re.sub(r'(?<="profile_id":)"[^"]*"', '""' if how == 3 else "17", text)


def _iso(millis: int) -> str:
    minute, rest = divmod(millis, MINUTE_MS)
    return f"{_iso_minute(minute)}{rest // 1000:02d}.{rest % 1000:03d}Z"


@lru_cache(maxsize=4096)
def _iso_minute(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, timezone.utc).strftime("%Y-%m-%dT%H:%M:")


def _zipf(draw: float, size: int) -> int:
    """Yield a rank from 1 to `size`; rank k is 1 / k times as likely as rank 1."""
    steps = _zipf_steps(size)
    return bisect_right(steps, draw * steps[-1]) + 1


@lru_cache(maxsize=16)
def _zipf_steps(size: int) -> tuple[int, ...]:
    return tuple(accumulate(10**9 // rank for rank in range(1, size + 1)))
