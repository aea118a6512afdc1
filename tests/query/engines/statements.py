"""Statements whose answers DuckDB and Spark must agree on, and such that DuckDB leaves alone."""

from __future__ import annotations

import random
from pathlib import Path


def _lines(file: str) -> list[str]:
    return (Path(__file__).parent / file).read_text(encoding="utf-8").splitlines()


# Each is a column over `probe`; the statement is ordered by id.
ALIKE = _lines("expressions.txt")

WHOLE = _lines("statements.txt")

# What sqlglot would translate, or DuckDB take, to another answer, or what nobody has compared.
LEFT_TO_SPARK = _lines("left_to_spark.txt")

# Rare values for which DuckDB stops, and Spark is asked.
STOPPED = (
    "SELECT whole / (small - small) AS x FROM probe",
    "SELECT whole DIV 0 AS x FROM probe",
    "SELECT upper(word) AS w FROM probe",
    "SELECT sum(whole * 1000) AS s FROM probe CROSS JOIN (VALUES (1), (2)) AS t (x) WHERE id = 5",
    "SELECT CAST(get_json_object(said, '$.mode') AS BIGINT) AS m FROM probe",
    "SELECT round(number * 1e17, 1) AS r FROM probe",
)


def generated(count: int, seed: int) -> list[str]:
    """Return random statements of which every part is one that translates."""
    chance = random.Random(seed)
    return [_statement(chance) for _ in range(count)]


def _statement(chance: random.Random) -> str:
    form = chance.randrange(4)
    where = f" WHERE {_condition(chance, 2)}" if chance.random() < 0.6 else ""
    if form == 0:
        columns = ", ".join(f"{_any(chance, 2)} AS c{i}" for i in range(chance.randint(1, 4)))
        return f"SELECT id, {columns} FROM probe{where} ORDER BY id"
    if form == 1:
        key = _any(chance, 1)
        having = f" HAVING count(*) > {chance.randint(0, 1)}" if chance.random() < 0.3 else ""
        columns = ", ".join(f"{_total(chance)} AS c{i}" for i in range(chance.randint(1, 3)))
        return f"SELECT {key} AS k, {columns} FROM probe{where} GROUP BY 1{having} ORDER BY 1"
    if form == 2:
        over = f"PARTITION BY {_any(chance, 0)} ORDER BY {_any(chance, 0)}, id"
        return f"SELECT id, {_total(chance)} OVER ({over}) AS c FROM probe{where} ORDER BY id"
    inner = f"SELECT {_number(chance, 1)} AS n, {_text(chance, 1)} AS t, id FROM probe{where}"
    outer = chance.choice(["n", "t", "n IS NULL", "coalesce(t, 'none')", "n > 3"])
    columns = f"{outer} AS o, count(*) AS c, max(n) AS m"
    return f"WITH w AS ({inner}) SELECT {columns} FROM w GROUP BY 1 ORDER BY 1"


def _number(chance: random.Random, depth: int) -> str:
    if depth == 0:
        return chance.choice(
            ["small", "id", "3", "-2", "length(word)", "hour(moment)", "size(tags)"]
        )
    left, right = _number(chance, depth - 1), _number(chance, depth - 1)
    forms = [
        f"({left} + {right})",
        f"({left} * {right})",
        f"({left} - {right})",
        f"coalesce({left}, {right})",
        f"greatest({left}, {right})",
        f"if({_condition(chance, depth - 1)}, {left}, {right})",
        f"abs({left})",
        f"({left} % 7)",
        f"({left} DIV 3)",
        f"nullif({left}, {right})",
    ]
    return chance.choice(forms)


def _text(chance: random.Random, depth: int) -> str:
    if depth == 0:
        return chance.choice(["word", "'a'", "CAST(id AS STRING)", "date_format(day, 'yyyy-MM')"])
    return chance.choice(
        [
            f"concat({_text(chance, 0)}, {_text(chance, 0)})",
            f"left({_text(chance, 0)}, 2)",
            f"CASE WHEN {_condition(chance, depth - 1)} THEN {_text(chance, 0)} END",
            f"coalesce({_text(chance, 0)}, 'x')",
        ]
    )


def _condition(chance: random.Random, depth: int) -> str:
    if depth == 0:
        return chance.choice(
            ["flag", "word > 'a'", "whole = 7", "day > '2026-10-30'", "number < 1", "word IS NULL"]
        )
    return chance.choice(
        [
            f"({_condition(chance, depth - 1)} AND {_condition(chance, depth - 1)})",
            f"({_condition(chance, depth - 1)} OR {_condition(chance, depth - 1)})",
            f"NOT ({_condition(chance, depth - 1)})",
            f"{_number(chance, depth - 1)} < {_number(chance, depth - 1)}",
            f"{_number(chance, depth - 1)} IN (1, 2, 7)",
            f"{_text(chance, depth - 1)} LIKE 'a%'",
            f"moment >= TIMESTAMP '2026-10-25 00:00:00' + INTERVAL '{chance.randint(0, 99)}' HOUR",
        ]
    )


def _any(chance: random.Random, depth: int) -> str:
    forms = (_number, _text, _condition)
    return chance.choice(
        [
            chance.choice(forms)(chance, depth),
            chance.choice(["date_trunc('DAY', moment)", "to_date(moment)", "day", "flag", "word"]),
            f"round({_number(chance, depth)} / 7, {chance.randint(0, 4)})",
        ]
    )


def _total(chance: random.Random) -> str:
    number = _number(chance, 1)
    return chance.choice(
        [
            "count(*)",
            f"sum({number})",
            f"max({number})",
            f"min({_text(chance, 1)})",
            f"count_if({_condition(chance, 1)})",
            f"avg({number})",
            "max(moment)",
            f"count({number})",
        ]
    )
