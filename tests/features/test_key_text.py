"""A key's value as a person writes it."""

from __future__ import annotations

import pytest

from tidemill.errors import UsageError
from tidemill.features.key_text import key_text


@pytest.mark.parametrize(
    ("type_", "written", "read"),
    [
        ("STRING", " 05 ", " 05 "),
        ("BIGINT", "-05", "-5"),
        ("BIGINT", "1_000", "1000"),
        ("BIGINT", "9223372036854775807", "9223372036854775807"),
        ("BOOLEAN", "TRUE", "true"),
        ("DECIMAL(5,2)", "1e2", "100"),
        ("DOUBLE", "1.50", "1.5"),
    ],
)
def test_a_value_of_the_type(type_: str, written: str, read: str) -> None:
    assert key_text("key", type_, written) == read


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        ("BIGINT", "1.5"),
        ("BIGINT", "9223372036854775808"),
        ("BIGINT", ""),
        ("BOOLEAN", "yes"),
        ("DECIMAL(5,2)", "NaN"),
        ("DECIMAL(5,2)", "1e999999999"),
        ("DOUBLE", "x"),
    ],
)
def test_no_value_of_the_type(type_: str, written: str) -> None:
    with pytest.raises(UsageError) as refused:
        key_text("points", type_, written)
    assert refused.value.message == f"{written!r} is no {type_}"
    assert refused.value.where == "key points"
