"""The shipped aggregates as verbs: each begins the sentence that declares a feature.

Columns come first, numbers by name. What each means, with nulls, ties and accuracy, stands in
`docs/aggregates/`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.features.feature import Feature, aggregate


def count() -> Feature:
    """Return the feature that counts events."""
    return aggregate("count")


def sum_(column: str, *, scale: int | None = None) -> Feature:
    """Return the sum of a number; of a double with `scale` digits after the point."""
    return aggregate("sum", of=column, scale=scale)


def mean(column: str, *, scale: int | None = None) -> Feature:
    """Return the mean of a number; null over an empty window."""
    return aggregate("mean", of=column, scale=scale)


def variance(column: str, *, scale: int | None = None) -> Feature:
    """Return the sample variance of a number; null of fewer than two."""
    return aggregate("variance", of=column, scale=scale)


def stddev(column: str, *, scale: int | None = None) -> Feature:
    """Return the sample standard deviation of a number; null of fewer than two."""
    return aggregate("stddev", of=column, scale=scale)


def min_(column: str) -> Feature:
    """Return the smallest value of a column; null over an empty window."""
    return aggregate("min", of=column)


def max_(column: str) -> Feature:
    """Return the largest value of a column; null over an empty window."""
    return aggregate("max", of=column)


def argmin(column: str, at: str) -> Feature:
    """Return the value of `column` in the event where `at` is smallest; of several the earliest."""
    return aggregate("argmin", of=column, at=at)


def argmax(column: str, at: str) -> Feature:
    """Return the value of `column` in the event where `at` is largest; of several the earliest."""
    return aggregate("argmax", of=column, at=at)


def first(column: str) -> Feature:
    """Return the first value of a column, by event time."""
    return aggregate("first", of=column)


def last(column: str) -> Feature:
    """Return the last value of a column, by event time."""
    return aggregate("last", of=column)


def first_k(column: str, k: int) -> Feature:
    """Return the first `k` values of a column by event time, the earliest first."""
    return aggregate("first_k", of=column, k=k)


def last_k(column: str, k: int) -> Feature:
    """Return the last `k` values of a column by event time, the newest first."""
    return aggregate("last_k", of=column, k=k)


def first_seen() -> Feature:
    """Return the time of the first event."""
    return aggregate("first_seen")


def last_seen() -> Feature:
    """Return the time of the last event."""
    return aggregate("last_seen")


def top_k(column: str, k: int) -> Feature:
    """Return the `k` largest values of a column, the largest first."""
    return aggregate("top_k", of=column, k=k)


def most_frequent(column: str, k: int) -> Feature:
    """Return the `k` most frequent values of a column with about how often."""
    return aggregate("most_frequent", of=column, k=k)


def distinct(column: str, *, limit: int | None = None) -> Feature:
    """Return how many different values a column has, exactly; null of more than `limit`."""
    return aggregate("distinct", of=column, limit=limit)


def approx_distinct(column: str, *, precision: int | None = None) -> Feature:
    """Return about how many different values a column has, with 2^`precision` registers."""
    return aggregate("approx_distinct", of=column, precision=precision)


def quantiles(column: str, at: Sequence[float] | None = None, *, k: int | None = None) -> Feature:
    """Return the values at the ranks `at` of a number's order, as a list; null when empty."""
    return aggregate("quantiles", of=column, at=at and tuple(at), k=k)


def bool_and(column: str) -> Feature:
    """Return whether a condition holds in every event; true over an empty window."""
    return aggregate("bool_and", of=column)


def bool_or(column: str) -> Feature:
    """Return whether a condition holds in any event; false over an empty window."""
    return aggregate("bool_or", of=column)


def bloom(column: str, *, capacity: int, error: float | None = None) -> Feature:
    """Return a Bloom filter of a column's values; ask it with `contains`."""
    return aggregate("bloom", of=column, capacity=capacity, error=error)


def cuckoo(column: str, *, capacity: int, error: float | None = None) -> Feature:
    """Return a Cuckoo filter of a column's values; ask it with `contains`."""
    return aggregate("cuckoo", of=column, capacity=capacity, error=error)


def ratio(of: str, to: str) -> Feature:
    """Return a feature divided by another, each named without its window; null where that is 0."""
    return aggregate("ratio", of=of, to=to)
