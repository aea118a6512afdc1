"""What becomes of ads: shown, and now and then clicked."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.sources.generator.kinds.kind import Kind, zipf
from tidemill.sources.generator.mix import Mix


def fields(numbers: Sequence[float], minute: int, mix: Mix) -> str:
    """Return ad_id and event_type: 2 to 10 % click, by the ad, the others impression."""
    ad, click, _ = numbers
    number = zipf(ad, mix.titles)
    action = "click" if click < (1 + number % 5) / 50 else "impression"
    return f'"ad_id":"ad-{number}","event_type":"{action}"'


KIND = Kind(
    time="event_time",
    fields=fields,
    key="ad_id",
    strange=('"event_type":"', '"event_type":"un'),
    renamed=('"event_type":', '"type":'),
)
