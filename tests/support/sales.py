"""A view of sales with every shipped aggregate, and the same counted by brute force.

Shares no code with the package but the declaration.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakes import NOW
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock, Place
from tidemill.features import (
    Feature,
    FeatureView,
    approx_distinct,
    argmax,
    argmin,
    bloom,
    bool_and,
    bool_or,
    contains,
    count,
    cuckoo,
    distinct,
    first,
    first_k,
    first_seen,
    last,
    last_k,
    last_seen,
    max_,
    mean,
    min_,
    most_frequent,
    quantiles,
    ratio,
    stddev,
    sum_,
    top_k,
    variance,
)
from tidemill.lake.catalog import Lake
from tidemill.lake.open import open_for_writing
from tidemill.pipeline.gold import refresh as gold
from tidemill.pipeline.silver import minute_buckets
from tidemill.pipeline.steps import feature_step

MERCHANTS = [f"m{i}" for i in range(12)]
SCHEMA = {
    "card": "string",
    "kind": "string",
    "merchant": "string?",
    "amount": "double",
    "points": "bigint",
    "price": "decimal(10,3)",
    "ok": "boolean",
}


@dataclass(frozen=True)
class Sale:
    card: str
    kind: str
    merchant: str | None
    amount: float
    points: int
    price: Decimal
    ok: bool
    at: datetime


def record(sale: Sale) -> str:
    """The sale as a line of a file."""
    said = {**asdict(sale), "at": sale.at.isoformat()}
    return json.dumps(
        said, default=lambda value: float(value) if isinstance(value, Decimal) else value
    )


def declare(features: Sequence[Feature], **words: Any) -> PipelineDefinition:
    view = FeatureView(
        name="sales", keys=["card"], event_time="at", schema=SCHEMA, features=features, **words
    )
    return PipelineDefinition(pipeline="sales", source={"kind": "files"}, views=(view,))


def frame(spark: SparkSession, view: FeatureView, sales: Iterable[Sale]) -> DataFrame:
    """Rows of the events table, as feature reads them."""
    columns = ", ".join(f"{n} {t}" for n, t in view.types.items() if n in {*SCHEMA, "at"})
    rows = [tuple(getattr(sale, name) for name in (*SCHEMA, "at")) for sale in sales]
    return spark.createDataFrame(rows, columns).coalesce(1)


@dataclass
class Sales:
    """An open lake of sales, fed by calling the batch functions."""

    lake: Lake
    batch: int = -1

    @classmethod
    def new(cls, spark: SparkSession, root: Path, definition: PipelineDefinition) -> Sales:
        return cls(open_for_writing(spark, Place(root), definition))

    def at(self, batch: int) -> Sales:
        """The lake as one that has seen the batches up to `batch`."""
        self.batch = batch
        return self

    @property
    def view(self) -> FeatureView:
        return self.lake.pipeline.views[0]

    def feed(self, sales: Iterable[Sale]) -> None:
        self.batch += 1
        rows = frame(self.lake.spark, self.view, sales)
        feature_step.feature_batch(
            rows, self.batch, lake=self.lake, clock=Clock(NOW), follows="event"
        )

    def refresh(self, as_of: datetime) -> gold.Refreshed:
        there = minute_buckets.bucketed(self.lake, self.view)
        return gold.refresh(
            self.lake, self.view, as_of=as_of, batch=there.batch, buckets=there.commits
        )

    def as_of(self) -> datetime:
        found = self.lake.gold_state(self.view).as_of
        assert found is not None
        return found

    def newest(self, table: str) -> int:
        return self.lake.commits(f"sales_{table}", 1)[0].version

    def mode(self) -> str:
        told = self.lake.gold_state(self.view).ledger
        assert told is not None
        return str(told["mode"])

    def gold(self) -> dict[str, dict[str, Any]]:
        rows = self.lake.spark.table("sales_features").collect()
        return {row["card"]: row.asDict() for row in rows}


Fold = Callable[[list[Sale]], Any]


def known(name: str) -> Fold:
    return lambda sales: [getattr(s, name) for s in sales if getattr(s, name) is not None]


def cents(value: float) -> Decimal:
    return Decimal(repr(value)).quantize(Decimal("0.01"), ROUND_HALF_UP)


def mean_of(values: Sequence[Decimal]) -> float | None:
    return float(sum(values)) / len(values) if values else None


def variance_of(values: Sequence[Decimal]) -> float | None:
    return float(statistics.variance(values)) if len(values) > 1 else None


def best(sales: list[Sale], key: Callable[[Sale], Any]) -> str | None:
    found = min((s for s in sales if s.merchant is not None), key=key, default=None)
    return found.merchant if found else None


def in_order(sales: list[Sale], newest: bool) -> list[str]:
    events = [(s.at, s.merchant) for s in sales if s.merchant is not None]
    return [merchant for _, merchant in sorted(events, reverse=newest)]


def backwards(text: str | None) -> list[int]:
    return [-ord(letter) for letter in text or ""]


CASES: list[tuple[Feature, str, Fold]] = [
    (count(), "count", len),
    (
        count().by("kind", ["buy", "look"]),
        "buy_count",
        lambda sales: sum(s.kind == "buy" for s in sales),
    ),
    (
        count().where("amount > 50 AND kind = 'buy'").named("large"),
        "large_count",
        lambda sales: sum(s.kind == "buy" and s.amount > 50 for s in sales),
    ),
    (sum_("points"), "points_sum", lambda sales: sum(s.points for s in sales)),
    (
        sum_("amount", scale=2),
        "amount_sum",
        lambda sales: sum((cents(s.amount) for s in sales), Decimal("0.00")),
    ),
    (sum_("price"), "price_sum", lambda sales: sum((s.price for s in sales), Decimal("0.000"))),
    (
        mean("amount", scale=2),
        "amount_mean",
        lambda sales: mean_of([cents(s.amount) for s in sales]),
    ),
    (
        variance("amount", scale=2),
        "amount_variance",
        lambda sales: variance_of([cents(s.amount) for s in sales]),
    ),
    (
        stddev("points"),
        "points_stddev",
        lambda sales: (
            None
            if len(sales) < 2
            else float(statistics.variance([Decimal(s.points) for s in sales])) ** 0.5
        ),
    ),
    (min_("amount"), "amount_min", lambda sales: min((s.amount for s in sales), default=None)),
    (max_("price"), "price_max", lambda sales: max((s.price for s in sales), default=None)),
    (
        argmax("merchant", "amount"),
        "merchant_argmax",
        lambda sales: best(sales, lambda s: (-s.amount, s.at, backwards(s.merchant))),
    ),
    (
        argmin("merchant", "amount"),
        "merchant_argmin",
        lambda sales: best(sales, lambda s: (s.amount, s.at, s.merchant)),
    ),
    (first("merchant"), "merchant_first", lambda s: next(iter(in_order(s, False)), None)),
    (last("merchant"), "merchant_last", lambda s: next(iter(in_order(s, True)), None)),
    (first_k("merchant", 3), "merchant_first_k", lambda s: in_order(s, False)[:3]),
    (last_k("merchant", 5), "merchant_last_k", lambda s: in_order(s, True)[:5]),
    (
        top_k("amount", 4),
        "amount_top_k",
        lambda sales: sorted((s.amount for s in sales), reverse=True)[:4],
    ),
    (
        most_frequent("merchant", 20),
        "merchant_most_frequent",
        lambda sales: Counter(known("merchant")(sales)),
    ),
    (distinct("merchant"), "merchant_distinct", lambda s: len(set(known("merchant")(s)))),
    (
        approx_distinct("merchant"),
        "merchant_approx_distinct",
        lambda s: len(set(known("merchant")(s))),
    ),
    (
        quantiles("amount", [0.0, 0.5, 1.0]),
        "amount_quantiles",
        lambda sales: quantiles_of(sorted(s.amount for s in sales)),
    ),
    (bool_and("ok"), "ok_bool_and", lambda sales: all(s.ok for s in sales)),
    (bool_or("ok"), "ok_bool_or", lambda sales: any(s.ok for s in sales)),
    (first_seen(), "first_seen", lambda sales: min((s.at for s in sales), default=None)),
    (last_seen(), "last_seen", lambda sales: max((s.at for s in sales), default=None)),
    (
        bloom("merchant", capacity=50),
        "merchant_bloom",
        lambda sales: set(known("merchant")(sales)),
    ),
    (
        cuckoo("merchant", capacity=50),
        "merchant_cuckoo",
        lambda sales: set(known("merchant")(sales)),
    ),
    (
        ratio("large_count", "count").named("share"),
        "share_ratio",
        lambda sales: (
            sum(s.kind == "buy" and s.amount > 50 for s in sales) / len(sales) if sales else None
        ),
    ),
]


def quantiles_of(values: list[float]) -> list[float] | None:
    if not values:
        return None
    # KLL's inclusive rule: the smallest value whose rank is at least the one asked for.
    middle = values[max(0, -(-len(values) // 2) - 1)]
    return [values[0], middle, values[-1]]


def brute(
    sales: Iterable[Sale], as_of: datetime, windows: dict[str, timedelta], bucket: timedelta
) -> dict[str, dict[str, Any]]:
    """Every feature of every card with an event in the longest window."""
    found: dict[str, dict[str, Any]] = {}
    events = list(sales)
    for card in {sale.card for sale in events}:
        mine = [sale for sale in events if sale.card == card]
        row = {}
        for window, length in windows.items():
            inside = [s for s in mine if as_of - length <= cut(s.at, bucket) < as_of]
            row |= {f"{name}_{window}": fold(inside) for _, name, fold in CASES}
        if any(row[f"count_{window}"] for window in windows):
            found[card] = row
    return found


def cut(at: datetime, bucket: timedelta) -> datetime:
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + (at - midnight) // bucket * bucket


def draw(random_: random.Random, start: datetime, minutes: int, number: int) -> list[Sale]:
    """Sales at random seconds, of few cards and values, so that ties are common."""
    return [
        Sale(
            card=f"c{random_.randrange(3)}",
            kind=random_.choice(["buy", "look"]),
            merchant=random_.choice([None, *(f"m{i}" for i in range(12))]),
            amount=random_.choice([0.005, 19.99, 50.0, 73.1, 100.25]),
            points=random_.randrange(-5, 100),
            price=Decimal(random_.randrange(100_000)).scaleb(-3),
            ok=random_.random() < 0.9,
            at=start + timedelta(seconds=random_.randrange(minutes * 60)),
        )
        for _ in range(number)
    ]


def same(found: Any, wanted: Any) -> bool:
    """Whether a value of gold is the brute force's: floats to their last digits, filters by what
    they contain, frequent items by their counts."""
    if isinstance(wanted, Counter):
        return {item["item"]: item["count"] for item in found} == dict(wanted)
    if isinstance(wanted, set):
        return wanted <= {m for m in MERCHANTS if contains(found, m)}
    if isinstance(wanted, float):
        return found is not None and math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(wanted, datetime):
        return found is not None and found.astimezone(wanted.tzinfo) == wanted
    return type(found) is type(wanted) and found == wanted


def nothing(windows: dict[str, timedelta]) -> dict[str, Any]:
    return {f"{name}_{window}": fold([]) for _, name, fold in CASES for window in windows}
