"""What cards pay: each as often as any other, but for one that is stolen, another every ten
minutes."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.sources.generator.kinds.kind import Kind, even, zipf
from tidemill.sources.generator.mix import Mix

STOLEN = 0.08
"""Share of the transactions that are made with the stolen card."""

HELD = 10
"""Minutes after which another card is the stolen one."""


def fields(numbers: Sequence[float], minute: int, mix: Mix) -> str:
    """Return card_id, merchant and amount: 1.00 to 500.99, half of them below 32.25."""
    card, merchant, amount, theft = numbers
    number = even(card, mix.profiles)
    if theft < STOLEN:
        number = minute // HELD * 7919 % mix.profiles + 1
    squared = amount * amount  # pow() may end in another digit on another machine
    cents = 100 + int(squared * squared * 50_000)
    return (
        f'"card_id":"card-{number}"'
        f',"merchant":"merchant-{zipf(merchant, mix.titles)}"'
        f',"amount":{cents // 100}.{cents % 100:02d}'
    )


KIND = Kind(
    time="event_time",
    fields=fields,
    key="card_id",
    strange=(r'"amount":([\d.]+)', r'"amount":"\1"'),
    renamed=('"merchant":', '"shop":'),
    numbers=4,
)
