"""What customers buy: some customers much more often than others."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.sources.generator.kinds.kind import Kind, zipf
from tidemill.sources.generator.mix import Mix


def fields(numbers: Sequence[float], minute: int, mix: Mix) -> str:
    """Return buyer, product and amount: 1.00 to 500.99, half of them below 126.00."""
    buyer, product, amount = numbers
    cents = 100 + int(amount * amount * 50_000)
    return (
        f'"buyer":"customer-{zipf(buyer, mix.profiles)}"'
        f',"product":"product-{zipf(product, mix.titles)}"'
        f',"amount":{cents // 100}.{cents % 100:02d}'
    )


KIND = Kind(
    time="event_time",
    fields=fields,
    key="buyer",
    strange=(r'"amount":([\d.]+)', r'"amount":"\1"'),
    renamed=('"product":', '"article":'),
)
