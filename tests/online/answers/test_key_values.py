"""Keys of a request as the store has them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tidemill.errors import RequestError
from tidemill.online import packing
from tidemill.online.answers import key_values
from tidemill.online.answers.limits import Limits


def read(type_: str, value: Any) -> Any:
    (key,) = key_values.read([[value]], {"key": type_}, Limits(), of_many=False)
    return key[0]


@pytest.mark.parametrize(
    ("type_", "one", "same"),
    [
        ("double", -0.0, 0.0),
        ("double", 1, 1.0),
        ("decimal(8,2)", "-0.00", "0"),
        ("decimal(8,2)", "1.50", "15e-1"),
        ("decimal(8,2)", 7, "7.00"),
    ],
)
def test_one_key_in_two_ways(type_: str, one: Any, same: Any) -> None:
    texts = {packing.key_text([read(type_, value)]) for value in (one, same)}
    assert len(texts) == 1


def test_a_zero_has_no_sign() -> None:
    assert math.copysign(1, read("double", -0.0)) == 1


def test_a_decimal_is_itself_to_the_last_digit() -> None:
    long = "1." + "0" * 40 + "1"
    assert packing.key_text([read("decimal(8,2)", long)]) != packing.key_text(
        [read("decimal(8,2)", "1")]
    )


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("double", 10**400),
        ("decimal(8,2)", "1e999999999"),
        ("decimal(8,2)", "1e-999999999"),
        ("decimal(8,2)", "NaN"),
        ("decimal(8,2)", "1" * 65),
        ("bigint", True),
        ("bigint", 1.0),
        ("boolean", 1),
    ],
)
def test_a_value_that_is_no_key(type_: str, value: Any) -> None:
    with pytest.raises(RequestError) as refused:
        read(type_, value)
    assert refused.value.message == "is no key of this view"
