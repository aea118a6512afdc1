"""What devices measure: each reports as often as any other, and few are ever too hot."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.sources.generator.kinds.kind import Kind, even
from tidemill.sources.generator.mix import Mix

FAULTY = 0.03
"""Share of the readings that are 30 degrees too hot, and not ok."""


def fields(numbers: Sequence[float], minute: int, mix: Mix) -> str:
    """Return device_id, temperature (18.0 to 28.9 when ok), humidity (35.0 to 64.9) and ok."""
    device, warmth, damp, fault = numbers
    number, ok = even(device, mix.profiles), fault >= FAULTY
    tenths = 180 + number % 7 * 5 + int(warmth * 80) + (0 if ok else 300)
    humid = 350 + int(damp * 300)
    return (
        f'"device_id":"device-{number}"'
        f',"temperature":{tenths // 10}.{tenths % 10}'
        f',"humidity":{humid // 10}.{humid % 10}'
        f',"ok":{"true" if ok else "false"}'
    )


KIND = Kind(
    time="event_time",
    fields=fields,
    key="device_id",
    strange=(r'"temperature":([\d.]+)', r'"temperature":"\1"'),
    renamed=('"humidity":', '"moisture":'),
    numbers=4,
)
