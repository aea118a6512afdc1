"""Ads that are shown, and clicked up to 70 minutes later, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.sources.generator.kinds.kind import Kind, even
from tidemill.sources.generator.mix import Mix

SLOWEST = 70  # minutes from an impression to its click
NUMBERS = 60  # of the impressions of a minute: a click draws one, which may never have been shown


def fields(numbers: Sequence[float], minute: int, mix: Mix) -> str:
    """Return impression_id, ad_id and event_type: 85 % impression, the others click. An id names
    the minute of the impression, and a number, of which the ad follows."""
    draw, delay, _ = numbers
    is_shown = draw < 0.85
    of = minute if is_shown else minute - int(delay * delay * SLOWEST)
    number = even(draw / 0.85 if is_shown else (draw - 0.85) / 0.15, NUMBERS)
    return (
        f'"impression_id":"impression-{of}-{number}"'
        f',"ad_id":"ad-{(of * 7 + number) % mix.titles + 1}"'
        f',"event_type":"{"impression" if is_shown else "click"}"'
    )


KIND = Kind(
    time="event_time",
    fields=fields,
    key="ad_id",
    strange=('"event_type":"', '"event_type":"un'),
    renamed=('"impression_id":', '"shown":'),
)
