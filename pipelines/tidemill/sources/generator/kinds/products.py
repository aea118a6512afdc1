"""What users do with products: view, buy, and review with a rating."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.sources.generator.kinds.kind import Kind, even, zipf
from tidemill.sources.generator.mix import Mix


def fields(numbers: Sequence[float], minute: int, mix: Mix) -> str:
    """Return product_id, user_id and event_type: 82 % view, 10 % purchase, 8 % review; a review has
    a rating of 1 to 5, mostly 4 or 5."""
    product, user, type_, stars = numbers
    action = "view" if type_ < 0.82 else "purchase" if type_ < 0.92 else "review"
    rating = f',"rating":{5 - int(stars * stars * 5)}' if action == "review" else ""
    return (
        f'"product_id":"product-{zipf(product, mix.titles)}"'
        f',"user_id":"user-{even(user, mix.profiles)}"'
        f',"event_type":"{action}"{rating}'
    )


KIND = Kind(
    time="event_time",
    fields=fields,
    key="product_id",
    strange=('"event_type":"', '"event_type":"un'),
    renamed=('"user_id":', '"customer":'),
    numbers=4,
)
