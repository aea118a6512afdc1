"""Values in statements: a text that is written as a literal is read as itself."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tidemill.lake.parameters import bound, quoted

HOSTILE = (
    "a'b",
    "a\\b",
    "\\' OR 1=1 --",
    "\\",
    "''",
    "line\nfeed\rreturn\ttab",
    "\x1b7[0m\x01\x7f",
    ":name ${conf} %_ {brace}",
    "\u202eright to left, \U0001f388",
    "`tick` /* no comment */ -- nor this",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_literal_is_one_line_of_sql(text: str) -> None:
    assert len(quoted(text).splitlines()) == 1


def test_spark_reads_a_literal_as_the_text(spark: SparkSession) -> None:
    texts = dict(zip("abcdefghij", HOSTILE, strict=True))
    select = ", ".join(f":{name} AS {name}" for name in texts)
    (row,) = spark.sql(bound(f"SELECT {select}", texts)).collect()
    assert row.asDict() == texts
