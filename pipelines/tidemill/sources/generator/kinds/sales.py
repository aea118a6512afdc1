"""What is sold in a shop, by category."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.sources.generator.kinds.kind import Kind, zipf
from tidemill.sources.generator.mix import Mix

CATEGORIES = ("books", "games", "garden", "kitchen", "music", "toys")


def fields(numbers: Sequence[float], minute: int, mix: Mix) -> str:
    """Return category, user_id and amount: 1.00 to 300.99, half of them below 76.00."""
    category, who, amount = numbers
    cents = 100 + int(amount * amount * 30_000)
    return (
        f'"category":"{CATEGORIES[zipf(category, len(CATEGORIES)) - 1]}"'
        f',"user_id":"user-{zipf(who, mix.profiles)}"'
        f',"amount":{cents // 100}.{cents % 100:02d}'
    )


KIND = Kind(
    time="event_time",
    fields=fields,
    key="user_id",
    strange=(r'"amount":([\d.]+)', r'"amount":"\1"'),
    renamed=('"category":', '"kind":'),
)
