"""Values in statements: a text that is written as a literal is read as itself."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from counting import compiled
from tidemill.lake.parameters import beside_code, bound, quoted
from tidemill.lake.session.temporary_conf import temporary_conf

HOSTILE = (
    "a'b",
    "a\\b",
    "\\' OR 1=1 --",
    "\\",
    "\\\\'",
    "''",
    "line\nfeed\rreturn\ttab",
    "\x1b7[0m\x01\x7f",
    "bell \a, form \f, vertical \v, back \b, end \x1a",
    "\x0012 is no octal number, nor \x07 7",
    "\\u0041 \\101 \\% \\_ \\n",
    "\x85next line\u2028separator\u2029",
    ":name ${conf} $${conf} \\${conf} ${env:HOME} $ %_ {brace}",
    "\u202eright to left, \U0001f388",
    "`tick` /* no comment */ -- nor this",
)
LETTERS = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": r"\%",
    "_": r"\_",
}
# As Spark 4.2 reads a literal: SparkParserUtils.unescapeSQLString.
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))|'(')", re.DOTALL)


def as_spark_reads(literal: str) -> str:
    """The text of a literal, which must be one: no quote inside that ends it."""
    assert re.fullmatch(r"'(?:[^'\\]|\\.|'')*'", literal, re.DOTALL), literal

    def character(match: re.Match[str]) -> str:
        short, long, octal, letter, quote = match.groups()
        if short or long:
            return chr(int(short or long, 16))
        return chr(int(octal, 8)) if octal else LETTERS.get(letter, letter or quote)

    return ESCAPE.sub(character, literal[1:-1])


@pytest.mark.parametrize("text", HOSTILE)
def test_a_literal_is_one_line_of_sql(text: str) -> None:
    literal = quoted(text)
    assert len(literal.splitlines()) == 1
    assert "${" not in literal
    assert as_spark_reads(literal) == text


def test_every_character_is_read_as_itself() -> None:
    """Alone, and beside what could make another escape of it."""
    for character in map(chr, [*range(0x2100), 0xFEFF, 0xFFFF, 0x1F388]):
        for text in (character, f"{character}12", f"\\{character}", f"{character}{{name}}"):
            assert as_spark_reads(quoted(text)) == text


def test_spark_reads_a_literal_as_the_text(spark: SparkSession) -> None:
    texts = {f"text{number}": text for number, text in enumerate(HOSTILE)}
    select = ", ".join(f":{name} AS {name}" for name in texts)
    (row,) = spark.sql(bound(f"SELECT {select}", texts)).collect()
    assert row.asDict() == texts


def test_a_number_beside_the_code_is_no_code(spark: SparkSession) -> None:
    """Rows of which Spark knows no value, as it would compute with them before it makes code."""
    conf = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    with temporary_conf(spark, conf):
        rows = spark.range(3).selectExpr("CAST(id AS STRING) AS name").localCheckpoint()

        def told(number: int) -> set[int]:
            stamped = rows.select(beside_code(number, "name").alias("batch"), "name")
            assert stamped.schema["batch"].simpleString() == "batch:bigint"
            assert not stamped.schema["batch"].nullable
            hashed = stamped.agg(F.collect_set("batch"), F.bit_xor(F.xxhash64("batch", "name")))
            return set(hashed.collect()[0][0])

        assert told(2**40) == {2**40}
        before = compiled(spark)
        assert told(7) == {7}
        assert compiled(spark) == before
