"""The columns that follow from features: what buckets keep, and what gold shows.

    feature ──► partials     columns of the bucket table, one per part of the aggregate
            ──► columns      of the gold table, one per value and window: an expression over terms
    term                     a partial, merged over a window

So a mean is an expression over two terms, a ratio one over the terms of two features. Where all
terms of a view add up, gold keeps each of them, hidden as `__<term>` unless it is a feature itself;
an incremental refresh adds to the terms and computes the expressions from them.
"""

from tidemill.features.columns.column import Column, Term
from tidemill.features.columns.gold_table import OVERFLOWED, columns_of, hidden_of, overflow_of
from tidemill.features.columns.partial import Partial, partials_of
from tidemill.features.columns.ratio import NUMBERS

__all__ = [
    "NUMBERS",
    "OVERFLOWED",
    "Column",
    "Partial",
    "Term",
    "columns_of",
    "hidden_of",
    "overflow_of",
    "partials_of",
]
