"""Regular expressions that one record could keep busy are refused."""

from __future__ import annotations

import pytest

from tidemill.features.expressions.row_expression import checked

TYPES = {"card": "STRING", "shop": "STRING"}


def condition(pattern: str) -> str:
    return "card RLIKE '" + pattern.replace("\\", "\\\\").replace("'", "\\'") + "'"


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a*)*$",
        "([a-z]+)*x",
        "(?:a+)+",
        "(a|a)*b",
        "(a|ab)+c",
        "(a|b?)+c",
        "(.*)*",
        "(.*,)+x",
        "(.*,){11}x",
        "(a?){30}a{30}",
        "a?" * 20 + "a" * 20,
        "((a{1,8}){1,8}){1,8}b",
        "(((((a{8}){8}){8}){8}){8}){8}",
        ".*.*x",
        ".*a.*b",
        "\\d+\\d+x",
        "\\w+\\d*-",
        "(\\w+\\s?)+$",
        "^(a+)*\\1$",
        "(?=a+)a+",
        "(?<=a)b",
        "\\p{L}+\\w+",
        "a{1,100}a{1,100}b",
        "(",
        "x" * 257,
    ],
)
def test_what_may_take_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="the pattern"):
        checked(condition(pattern), TYPES, condition=True)


@pytest.mark.parametrize(
    "pattern",
    [
        "^[a-z]+$",
        "^\\d+-\\d+-\\d+$",
        "(\\d{1,3}\\.){3}\\d{1,3}",
        "https?://(www\\.)?[^/]+/.*",
        "^[^@]+@[^@]+$",
        "[^a]*a.*",
        "(ab)+c*",
        "(foo|bar)+",
        "^(foo|bar|baz)$",
        "\\p{L}+ \\d+",
        "a{3}b{2,5}",
        "colou?r",
        "(?i)error",
        "é+",
        "",
    ],
)
def test_what_takes_its_time_once_is_taken(pattern: str) -> None:
    checked(condition(pattern), TYPES, condition=True)


@pytest.mark.parametrize(
    "text",
    [
        "card RLIKE shop",
        "regexp_like(card, '(a+)+b')",
        "regexp_count(card, concat('(a+)', '+b')) > 1",
        "regexp_extract(card, '(a*)*b') = 'a'",
        "regexp_replace(card, '(a+)+b', 'x') = 'a'",
        "regexp_instr(card, '(a+)+b') = 1",
        "split(card, '(a+)+b')[0] = 'a'",
    ],
)
def test_every_function_of_patterns_is_looked_at(text: str) -> None:
    with pytest.raises(ValueError, match="the pattern"):
        checked(text, TYPES, condition=True)
