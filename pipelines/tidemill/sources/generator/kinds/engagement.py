"""What profiles do with titles: few of either make most of the events."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.sources.generator.kinds.kind import Kind, zipf
from tidemill.sources.generator.mix import Mix


def fields(numbers: Sequence[float], minute: int, mix: Mix) -> str:
    """Return profile_id, gti and event_type: 65 % highlight, 25 % select, 10 % view."""
    profile, title, type_ = numbers
    action = "highlight" if type_ < 0.65 else "select" if type_ < 0.9 else "view"
    return (
        f'"profile_id":"profile-{zipf(profile, mix.profiles)}"'
        f',"gti":"title-{zipf(title, mix.titles)}"'
        f',"event_type":"{action}"'
    )


KIND = Kind(
    time="event_timestamp",
    fields=fields,
    key="profile_id",
    strange=('"event_type":"', '"event_type":"un'),
    renamed=('"gti":', '"title":'),
)
