"""The kinds of made-up events by name: a module each, with the columns of a shipped pipeline or
dimension."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tidemill.sources.generator.kinds import (
    ads,
    cards,
    customers,
    devices,
    engagement,
    impressions,
    orders,
    products,
    purchases,
    sales,
    visits,
)
from tidemill.sources.generator.kinds.kind import Kind

ENGAGEMENT = "engagement"
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        ENGAGEMENT: engagement.KIND,
        "cards": cards.KIND,
        "devices": devices.KIND,
        "ads": ads.KIND,
        "products": products.KIND,
        "purchases": purchases.KIND,
        "customers": customers.KIND,
        "orders": orders.KIND,
        "visits": visits.KIND,
        "sales": sales.KIND,
        "impressions": impressions.KIND,
    }
)

__all__ = ["ENGAGEMENT", "KINDS", "Kind"]
