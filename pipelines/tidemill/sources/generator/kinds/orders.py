"""Orders and their payments, which come up to 40 minutes after them, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.sources.generator.kinds.kind import Kind, even, zipf
from tidemill.sources.generator.mix import Mix

SLOWEST = 40  # minutes from an order to its payment
NUMBERS = 30  # of the orders of a minute: a payment draws one, which may never have been ordered


def fields(numbers: Sequence[float], minute: int, mix: Mix) -> str:
    """Return order_id, customer, event_type and amount: 55 % order, the others payment. An order's
    id names the minute in which it was made, and a number that two of them may share."""
    draw, who, delay, amount = numbers
    is_order = draw < 0.55
    of = minute if is_order else minute - int(delay * delay * SLOWEST)
    number = even(draw / 0.55 if is_order else (draw - 0.55) / 0.45, NUMBERS)
    cents = 500 + int(amount * 20_000)
    return (
        f'"order_id":"order-{of}-{number}"'
        f',"customer":"customer-{zipf(who, mix.profiles)}"'
        f',"event_type":"{"order" if is_order else "payment"}"'
        f',"amount":{cents // 100}.{cents % 100:02d}'
    )


KIND = Kind(
    time="event_time",
    fields=fields,
    key="order_id",
    strange=('"event_type":"', '"event_type":"un'),
    renamed=('"customer":', '"buyer":'),
    numbers=4,
)
