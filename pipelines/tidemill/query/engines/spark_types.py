"""Types as Spark names them, and what two of them have in common.

A type is its text in lower case: `bigint`, `array<string>`, `decimal(10,2)`. A family is what
expressions ask about: whole numbers of any width are one.
"""

from __future__ import annotations

from collections.abc import Iterable

SPARK = "databricks"  # sqlglot's name for the dialect of Spark with Delta
WHOLE = ("tinyint", "smallint", "int", "bigint")
_FAMILIES = {**dict.fromkeys(WHOLE, "whole"), "integer": "whole", "long": "whole"}
_NESTED = ("array", "map", "struct", "decimal")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
ORDERED = ("whole", "double", "string", "boolean", "timestamp", "date", "decimal")


def family(type_: str) -> str:
    """Return what kind of type it is: `whole`, `decimal`, `array` ..., or the type itself."""
    outer = type_.partition("<")[0].partition("(")[0]
    return _FAMILIES.get(outer, outer)


def element(type_: str) -> str:
    """Return the type of an array's elements, and of a map's values."""
    inside = type_.partition("<")[2].removesuffix(">")
    return inside if family(type_) == "array" else inside.split(",", 1)[-1].strip()


def decimal(type_: str) -> tuple[int, int]:
    """Return the digits of a decimal type, and how many of them stand behind the point."""
    digits, scale = type_.removeprefix("decimal(").removesuffix(")").split(",")
    return int(digits), int(scale)


def common(types: Iterable[str]) -> str | None:
    """Return the one type that values of these have where a statement chooses among them, as CASE
    does; None where Spark and DuckDB might not agree on it."""
    known = [each for each in dict.fromkeys(types) if each != "void"]
    if len(known) > 1 and {family(each) for each in known} == {"array"}:
        known = [each for each in known if each != "array<void>"]
    if len(known) <= 1:
        return known[0] if known else "void"
    families = {family(each) for each in known}
    if families == {"whole"}:
        return max(known, key=WHOLE.index)
    if families <= {"whole", "decimal"}:
        return _common_decimal(known)
    return "double" if families <= {"whole", "double"} else None


def _common_decimal(types: Iterable[str]) -> str | None:
    """Return the decimal that holds all of them, None where it would have more than 38 digits."""
    each = [decimal(t) if family(t) == "decimal" else (_DIGITS[t], 0) for t in types]
    scale = max(behind for _, behind in each)
    digits = max(of - behind for of, behind in each) + scale
    return f"decimal({digits},{scale})" if digits <= 38 else None
