"""The kinds of made-up events by name: a module each, with the columns of one shipped pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tidemill.sources.generator.kinds import ads, cards, devices, engagement, products
from tidemill.sources.generator.kinds.kind import Kind

ENGAGEMENT = "engagement"
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        ENGAGEMENT: engagement.KIND,
        "cards": cards.KIND,
        "devices": devices.KIND,
        "ads": ads.KIND,
        "products": products.KIND,
    }
)

__all__ = ["ENGAGEMENT", "KINDS", "Kind"]
