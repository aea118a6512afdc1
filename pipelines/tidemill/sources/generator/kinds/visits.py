"""What visitors look at in a shop: a few of them all day, most now and then."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.sources.generator.kinds.kind import Kind, zipf
from tidemill.sources.generator.mix import Mix

PAGES = ("home", "search", "product", "product", "cart", "checkout", "help")


def fields(numbers: Sequence[float], minute: int, mix: Mix) -> str:
    """Return user_id, user_kind and page: every tenth user is of the staff."""
    who, page, _ = numbers
    user = zipf(who, mix.profiles)
    return (
        f'"user_id":"user-{user}","user_kind":"{"staff" if user % 10 == 0 else "customer"}"'
        f',"page":"{PAGES[int(page * page * len(PAGES))]}"'
    )


KIND = Kind(
    time="event_time",
    fields=fields,
    key="user_id",
    strange=('"page":"', '"page":"un'),
    renamed=('"user_kind":', '"kind":'),
)
