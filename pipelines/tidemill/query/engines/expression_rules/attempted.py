"""Expressions that are null in the place of an error (see `fallible`).

Spark alone has what catches one. DuckDB computes the expression itself: where it does not fail it
is the same, and where it fails the statement does, which is then Spark's.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from tidemill.features.expressions import fallible
from tidemill.query.engines.spark_types import SPARK


def without_attempt(branch: exp.If) -> None:
    """Take the condition from a branch of a CASE where it says that its value does not fail."""
    times = [each.this for each in branch.this.find_all(exp.UnixSeconds)]
    if times and _holds(branch.args["true"], times[0]) == branch.this.sql(dialect=SPARK):
        branch.set("this", exp.true())


def _holds(value: exp.Expr, time: exp.Expr) -> str:
    text = fallible.holds(value.sql(dialect=SPARK), time.sql(dialect=SPARK))
    return sqlglot.parse_one(text, dialect=SPARK).sql(dialect=SPARK)
