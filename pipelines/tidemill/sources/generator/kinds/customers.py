"""What becomes of customers, as Debezium tells it of a table in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.sources.generator.kinds.kind import Kind, even
from tidemill.sources.generator.mix import Mix

SEGMENTS = ("basic", "silver", "gold")
COUNTRIES = ("DE", "FR", "PL", "PT", "SE")
LEFT = 0.02
"""Share of the changes by which a customer leaves."""

PLACES = 10**6  # of a minute, in the log
MINUTE_MS = 60_000


def fields(numbers: Sequence[float], minute: int, mix: Mix) -> str:
    """Return the parts of an envelope: op, before, after and source; the log goes by the minute."""
    customer, segment, country, fate, place = numbers
    lsn = minute * PLACES + int(place * PLACES)
    key = f'"customer_id":"customer-{even(customer, mix.profiles)}"'
    source = (
        '"source":{"connector":"postgresql","table":"customers"'
        f',"lsn":{lsn},"ts_ms":{minute * MINUTE_MS + int(place * MINUTE_MS)}}}'
    )
    if fate < LEFT:
        return f'"op":"d","before":{{{key}}},"after":null,{source}'
    row = (
        f'{{{key},"segment":"{SEGMENTS[int(segment * segment * 3)]}"'
        f',"country":"{COUNTRIES[int(country * 5)]}"}}'
    )
    return f'"op":"u","before":null,"after":{row},{source}'


KIND = Kind(
    time="ts_ms",
    fields=fields,
    key="customer_id",
    strange=(r'"op":"\w"', '"op":"?"'),
    renamed=('"lsn":', '"position":'),
    numbers=5,
)
