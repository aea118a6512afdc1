"""Sums that a window cannot break: exact in any order of rows, null where the type is too small.

A BIGINT is added up in two halves, which no number of rows overflows. A decimal has at most 18
digits, so a sum of 38 digits overflows only by squares, which never come down again; null is then
what every order of rows gives.
"""

from __future__ import annotations


def total(value: str, type_: str, filter_: str = "") -> str:
    """Return the SQL of the sum of a value in a type, 0 of no rows, null where it does not fit."""
    if type_ == "BIGINT":
        return f"try_cast({whole(value, filter_)} AS BIGINT)"
    return f"if(count({value}){filter_} = 0, 0, try_sum({value}){filter_})"


def whole(value: str, filter_: str = "") -> str:
    """Return the SQL of the exact sum of a BIGINT, as a DECIMAL(38, 0); 0 of no rows."""
    high = f"CAST(sum(shiftright({value}, 32)){filter_} AS DECIMAL(38, 0)) * 4294967296"
    return f"coalesce({high} + sum(({value}) & 4294967295){filter_}, 0)"


def difference(value: str, type_: str, sign: str) -> str:
    """Return the SQL of what signed rows add: a DECIMAL(38, 0) for a BIGINT; null on overflow."""
    if type_ == "BIGINT":
        high = f"CAST(sum(shiftright({value}, 32) * {sign}) AS DECIMAL(38, 0)) * 4294967296"
        return f"coalesce({high} + sum(({value} & 4294967295) * {sign}), 0)"
    return total(f"CASE {sign} WHEN 1 THEN {value} WHEN -1 THEN -{value} ELSE 0 END", type_)


def together(value: str, type_: str) -> str:
    """Return the SQL of the sum of sums, of which one that is null leaves no sum."""
    sum_sql = f"try_cast(sum({value}) AS BIGINT)" if type_ == "BIGINT" else f"try_sum({value})"
    return f"CASE WHEN count({value}) = count(*) THEN {sum_sql} END"
