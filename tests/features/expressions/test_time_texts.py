"""What Spark would read relative to now is refused; texts that are only texts are not."""

from __future__ import annotations

import pytest

from tidemill.features.expressions.row_expression import checked

TYPES = {"card": "STRING", "points": "BIGINT", "at": "TIMESTAMP"}


@pytest.mark.parametrize(
    "text",
    [
        "TIMESTAMP 'now' > at",
        "DATE 'today' = at",
        "TIMESTAMP_NTZ 'yesterday' < at",
        "TIMESTAMP '12:30' > at",
        "TIMESTAMP 'T12:30' > at",
        "CAST('now' AS TIMESTAMP) > at",
        "CAST((' Tomorrow ') AS DATE) > at",
        "'today'::date = at",
        "TRY_CAST('12:30' AS TIMESTAMP) = at",
        "CAST(card AS TIMESTAMP) = at",
        "CAST(card AS TIMESTAMP_NTZ) = at",
        "CAST(concat('n', 'ow') AS DATE) = at",
        "CAST('n' || 'ow' AS DATE) = at",
        "CAST(left(card, 5) AS TIMESTAMP) = at",
        "CAST(split(card, ',')[0] AS TIMESTAMP) = at",
        "CAST(if(points > 1, 'now', card) AS DATE) = at",
        "at > 'now'",
        "'12:30' < at",
        "at = card",
        "at <=> card",
        "at IS DISTINCT FROM 'now'",
        "at IN ('2026-11-21', 'today')",
        "at BETWEEN '2026-11-21' AND 'now'",
        "(at, card) IN (('now', 'x'))",
        "(at, card) = ('now', 'x')",
        "CASE at WHEN 'now' THEN true END",
        "CASE WHEN points > 1 THEN at ELSE 'now' END > at",
        "coalesce(at, 'now') > at",
        "greatest(at, 'now') > at",
        "nvl2(card, at, 'now') = at",
        "if(points > 1, at, 'now') = at",
        "nullif('now', at) IS NULL",
        "hour('12:30') = 1",
        "hour(card) = 1",
        "year('now') = points",
        "unix_seconds('now') = points",
        "date_trunc('hour', 'now') = at",
        "date_trunc('hour', card) = at",
        "trunc('today', 'MM') = at",
        "dayofweek(lower('TODAY')) = 1",
        "'12:30' + INTERVAL 1 DAY > at",
        "card + INTERVAL 1 DAY > at",
        "at - 'now' > INTERVAL 1 DAY",
        "try_add('now', INTERVAL 1 DAY) > at",
        "try_to_timestamp(card) = at",
        "try_to_timestamp('12:30') = at",
    ],
)
def test_a_time_without_its_day_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is read as a time and may name no day"):
        checked(text, TYPES, condition=True)


@pytest.mark.parametrize(
    "text",
    [
        "card = 'now'",
        "card IN ('today', '12:30')",
        "(at, card) IN (('2026-11-21', 'now'))",
        "lower(card) = 'today'",
        "CASE card WHEN 'now' THEN true END",
        "at > '2026-11-21 12:30'",
        "at > '2026-11-21T12:30:00Z'",
        "at > DATE '2026-11'",
        "CAST(card AS DATE) = DATE '2026-11-21'",
        "try_to_timestamp(card, 'HH:mm') = TIMESTAMP '1970-01-01 12:30'",
        "at - INTERVAL '12:30' HOUR TO MINUTE > '2026-11-21'",
        "date_trunc('hour', at) = '2026-11-21 12:00'",
        "card = '12:30' AND at > '2026-11-21'",
    ],
)
def test_texts_and_whole_times_are_taken(text: str) -> None:
    checked(text, TYPES, condition=True)
