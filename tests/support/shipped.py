"""What each shipped definition should hold, counted by brute force from the records as they came.

Shares no code with the package: a record is valid by what is written here, and a feature is a
Python expression over the events of a window.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

Event = dict[str, Any]
Window = Callable[..., list[Event]]
NUMBER = (int, Decimal)
MINUTES, HOURS, DAYS = (timedelta(**{unit: 1}) for unit in ("minutes", "hours", "days"))


@dataclass(frozen=True)
class Oracle:
    """A definition's keys, the fields of a valid event with their types and values, and features:
    a row by name from a function that yields the events of a window, in order of time."""

    keys: tuple[str, ...]
    time: str
    fields: Mapping[str, Any]
    features: Callable[[Window], dict[str, Any]]
    optional: Mapping[str, Any] = field(default_factory=dict)
    types: tuple[str, ...] = ()
    also: Callable[[Event], None] = lambda event: None  # what an event takes of dimensions

    def events(self, payloads: Iterable[str]) -> list[Event]:
        """The valid, distinct events."""
        found = {}
        for payload in payloads:
            try:
                event = json.loads(payload, parse_float=Decimal)
            except ValueError:
                continue
            if self._is_valid(event):
                event["at"] = moment(event[self.time])
                if event["at"].year < 2099:
                    self.also(event)
                    found.setdefault((event["event_id"], event["at"]), event)
        return list(found.values())

    def _is_valid(self, event: Event) -> bool:
        wrong = [n for n, type_ in self.fields.items() if not isinstance(event.get(n), type_)]
        wrong += [n for n, t in self.optional.items() if n in event and not isinstance(event[n], t)]
        empty = [name for name in self.fields if event.get(name) == ""]
        known = not self.types or event.get("event_type") in self.types
        return not wrong and not empty and known and event.get("page", "home") in PAGES

    def rows(self, events: Sequence[Event], as_of: datetime) -> dict[tuple[str, ...], Event]:
        """Every feature of every key that has an event."""
        by_key: dict[tuple[str, ...], list[Event]] = {}
        for event in sorted(events, key=lambda event: event["at"]):
            by_key.setdefault(tuple(event[key] for key in self.keys), []).append(event)
        return {key: self.features(window_of(mine, as_of)) for key, mine in by_key.items()}

    def nothing(self) -> dict[str, Any]:
        """The features of a key without events."""
        return self.features(window_of([], datetime.now(timezone.utc)))


def of_buyers(changes: Iterable[str]) -> Callable[[Event], None]:
    """What a purchase takes of its buyer: the row of the last change before it, by the place in the
    log; of one who has left, or was not known yet, nothing."""
    places: dict[str, dict[int, tuple[datetime, Event | None]]] = {}
    for change in map(json.loads, changes):
        key = (change["after"] or change["before"])["customer_id"]
        source = change["source"]
        places.setdefault(key, {})[source["lsn"]] = moment(source["ts_ms"]), change["after"]

    def taken(event: Event) -> None:
        log = sorted(places.get(event["buyer"], {}).items())
        held = [after for _, (at, after) in log if at <= event["at"]]
        row = (held and held[-1]) or {}
        event["segment"], event["country"] = row.get("segment"), row.get("country")
        event["market"] = row.get("country") or "unknown"

    return taken


def moment(value: int | str) -> datetime:
    if isinstance(value, int):
        return datetime.fromtimestamp(value / 1000, timezone.utc)
    return datetime.fromisoformat(value.replace("Z", "+00:00"))


def end_of(events: Iterable[Event]) -> datetime:
    """The end of the newest event's minute."""
    newest = max(event["at"] for event in events)
    return newest.replace(second=0, microsecond=0) + timedelta(minutes=1)


def window_of(events: list[Event], as_of: datetime) -> Window:
    def window(length: timedelta, ago: timedelta = timedelta(0)) -> list[Event]:
        end = as_of - ago
        return [event for event in events if end - length <= event["at"] < end]

    return window


def values(events: list[Event], name: str) -> list[Any]:
    return [event[name] for event in events]


def mean(found: list[Any]) -> float | None:
    return float(sum(found)) / len(found) if found else None


def ranked(found: list[Any], rank: float) -> float:
    """The smallest value whose rank is at least the one asked for."""
    return float(sorted(found)[max(0, math.ceil(rank * len(found)) - 1)])


def of_type(events: list[Event], type_: str) -> list[Event]:
    return [event for event in events if event["event_type"] == type_]


def engagement(window: Window) -> dict[str, Any]:
    return {
        f"{type_}_count_{text}": len(of_type(window(length), type_))
        for text, length in {"1h": HOURS, "12h": 12 * HOURS, "1d": DAYS}.items()
        for type_ in ("select", "highlight", "view")
    }


def title_activity(window: Window) -> dict[str, Any]:
    return {name: number for name, number in engagement(window).items() if "12h" not in name}


PAGES = ("home", "search", "product", "cart", "checkout", "help")


def page_views(window: Window) -> dict[str, Any]:
    return {
        f"{page}_count_{text}": sum(event["page"] == page for event in window(length))
        for text, length in {"1h": HOURS, "1d": DAYS}.items()
        for page in PAGES
    }


def category_sales(window: Window) -> dict[str, Any]:
    return {
        f"{name}_{text}": value
        for text, length in {"1h": HOURS, "1d": DAYS}.items()
        for name, value in (
            ("revenue_sum", sum(values(window(length), "amount"), Decimal("0.00"))),
            ("sale_count", len(window(length))),
        )
    }


def ad_views(window: Window) -> dict[str, Any]:
    return {
        f"{type_}_count_{text}": len(of_type(window(length), type_))
        for text, length in {"1h": HOURS, "1d": DAYS}.items()
        for type_ in ("impression", "click")
    }


def orders(window: Window) -> dict[str, Any]:
    counts = {
        f"{type_}_count_{text}": len(of_type(window(length), type_))
        for text, length in {"1h": HOURS, "1d": DAYS}.items()
        for type_ in ("order", "payment")
    }
    ordered = counts["order_count_1d"]
    return {**counts, "paid_ratio_1d": counts["payment_count_1d"] / ordered if ordered else None}


def card_fraud(window: Window) -> dict[str, Any]:
    now = window(5 * MINUTES)
    dearest = sorted(now, key=lambda event: (-event["amount"], event["at"]))
    row = {
        "transaction_count_5m": len(now),
        "amount_sum_5m": sum(values(now, "amount"), Decimal("0.00")),
        "merchant_distinct_5m": len(set(values(now, "merchant"))),
        "amount_max_5m": float(dearest[0]["amount"]) if now else None,
        "merchant_argmax_5m": dearest[0]["merchant"] if now else None,
    }
    for hours in (24, 48, 72):
        amounts = values(window(hours * HOURS), "amount")
        row[f"transaction_count_{hours}h"] = len(amounts)
        row[f"amount_mean_{hours}h"] = mean(amounts)
    return row


def device_stats(window: Window) -> dict[str, Any]:
    now = window(5 * MINUTES)
    warmth = values(now, "temperature")
    return {
        "reading_count_5m": len(now),
        "temperature_mean_5m": mean(warmth),
        "temperature_max_5m": float(max(warmth)) if now else None,
        "temperature_quantiles_5m": [ranked(warmth, r) for r in (0.5, 0.9, 0.99)] if now else None,
        "humidity_mean_5m": mean(values(now, "humidity")),
        "ok_bool_and_5m": all(values(now, "ok")),
    }


def ad_performance(window: Window) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for text, events in {"1h": window(HOURS), "1h_1d_ago": window(HOURS, DAYS)}.items():
        shown, clicked = len(of_type(events, "impression")), len(of_type(events, "click"))
        row[f"impression_count_{text}"] = shown
        row[f"click_count_{text}"] = clicked
        row[f"click_through_ratio_{text}"] = clicked / shown if shown else None
    return row


def product_signals(window: Window) -> dict[str, Any]:
    now, month = window(15 * MINUTES), window(30 * DAYS)
    reviews = of_type(month, "review")
    newest = sorted(reviews, key=lambda event: (event["at"], event["user_id"]), reverse=True)
    return {
        **{f"{t}_count_15m": len(of_type(now, t)) for t in ("view", "purchase", "review")},
        "negative_review_bool_or_30d": any(event.get("rating", 5) <= 2 for event in reviews),
        "reviewer_last_k_30d": values(newest[:5], "user_id"),
        "buyer_cuckoo_30d": set(values(of_type(month, "purchase"), "user_id")),
    }


def customers(window: Window) -> dict[str, Any]:
    return {
        f"{name}_{text}": value
        for text, length in {"1h": HOURS, "1d": DAYS}.items()
        for name, value in (
            ("purchase_count", len(window(length))),
            ("spend_sum", sum(values(window(length), "amount"), Decimal("0.00"))),
        )
    }


def enriched_purchases(window: Window) -> dict[str, Any]:
    day = window(DAYS)
    gold = [event for event in day if event["segment"] == "gold"]
    return {
        **{
            f"{segment}_count_{text}": len([e for e in window(length) if e["segment"] == segment])
            for text, length in {"1h": HOURS, "1d": DAYS}.items()
            for segment in ("basic", "silver", "gold")
        },
        "spend_sum_1d": sum(values(day, "amount"), Decimal("0.00")),
        "gold_sum_1d": sum(values(gold, "amount"), Decimal("0.00")),
        "buyer_distinct_1d": len(set(values(day, "buyer"))),
    }


PURCHASE = {"buyer": str, "product": str, "amount": NUMBER}
ORACLES = {
    "customers": Oracle(("buyer",), "event_time", PURCHASE, customers),
    "enriched_purchases": Oracle(("market",), "event_time", PURCHASE, enriched_purchases),
    "engagement": Oracle(
        ("profile_id", "gti"),
        "event_timestamp",
        {"profile_id": str, "gti": str, "event_type": str},
        engagement,
        types=("select", "highlight", "view"),
    ),
    "attribution": Oracle(
        ("gti",),
        "event_timestamp",
        {"profile_id": str, "gti": str, "event_type": str},
        title_activity,
        types=("select", "highlight", "view"),
    ),
    "orders": Oracle(
        ("customer",),
        "event_time",
        {"order_id": str, "customer": str, "event_type": str, "amount": NUMBER},
        orders,
        types=("order", "payment"),
    ),
    "activity_spells": Oracle(
        ("user_id",),
        "event_time",
        {"user_id": str, "user_kind": str, "page": str},
        page_views,
    ),
    "user_sessions": Oracle(
        ("user_id",),
        "event_time",
        {"user_id": str, "user_kind": str, "page": str},
        page_views,
    ),
    "sales_summary": Oracle(
        ("category",),
        "event_time",
        {"category": str, "user_id": str, "amount": NUMBER},
        category_sales,
    ),
    "ad_attribution": Oracle(
        ("ad_id",),
        "event_time",
        {"impression_id": str, "ad_id": str, "event_type": str},
        ad_views,
        types=("impression", "click"),
    ),
    "card_fraud": Oracle(
        ("card_id",),
        "event_time",
        {"card_id": str, "merchant": str, "amount": NUMBER},
        card_fraud,
    ),
    "device_stats": Oracle(
        ("device_id",),
        "event_time",
        {"device_id": str, "temperature": NUMBER, "humidity": NUMBER, "ok": bool},
        device_stats,
    ),
    "ad_performance": Oracle(
        ("ad_id",),
        "event_time",
        {"ad_id": str, "event_type": str},
        ad_performance,
        types=("impression", "click"),
    ),
    "product_signals": Oracle(
        ("product_id",),
        "event_time",
        {"product_id": str, "user_id": str, "event_type": str},
        product_signals,
        optional={"rating": int},
        types=("view", "purchase", "review"),
    ),
}
