"""The one reader of YAML: values, their lines, and what it refuses."""

from __future__ import annotations

import pytest

from tidemill.config.yaml_values import DEEPEST, YamlError, parse

TEXT = """\
a: 1
on: [x, 2026-11-21T10:00:00Z]
1:
  - b: null
    b: 0.5
"""


def test_values_know_their_lines_and_keys_are_text() -> None:
    parsed = parse(TEXT)
    assert list(parsed.value) == ["a", "on", "1"]
    assert (parsed.value["a"], parsed.value["on"][0]) == (1, "x")
    assert parsed.value["on"][1].utcoffset() is not None
    assert parsed.value["1"] == [{"b": 0.5}]
    steps = ((), ("a",), ("on", 1), ("1",), ("1", 0), ("1", 0, "b"))
    assert [parsed.lines[one] for one in steps] == [1, 1, 2, 3, 4, 5]
    assert parsed.repeated == (("b", 5),)


def test_json_is_read_too() -> None:
    assert parse('{"a": [true, 1.5, "x"]}').value == {"a": [True, 1.5, "x"]}


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_an_empty_text_has_no_node(text: str) -> None:
    assert (parse(text).value, parse(text).node) == (None, None)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: [", 2, "is no YAML: expected the node content"),
        ("a: 1\nb: c: d\n", 2, "is no YAML: mapping values are not allowed here"),
        ("a: 1\n---\nb: 2\n", 2, "is no YAML: expected a single document in the stream, but found"),
        ("a: 1\nb: \x07\n", 2, "is no YAML: special characters are not allowed"),
        ("a: 1\nb: 2026-02-30\n", 2, "is no YAML: '2026-02-30' cannot be read: day is out of"),
        ("a: 1\n? [b]\n: 2\n", 2, "is no YAML: a list or a mapping is no key"),
        ("a: 1\nb: !Ref c\n", 2, "is no YAML: could not determine a constructor"),
        ("a: 1\nb: !!bool c\n", 2, "is no YAML: 'c' cannot be read"),
        ("a: 1\nb: !!timestamp c\n", 2, "is no YAML: 'c' cannot be read"),
        ("a: 1\nb: " + "[" * 5000, 2, "is nested too deeply"),
        ("a: 1\nb: &c [*c]\n", 2, "is nested too deeply"),
    ],
)
def test_what_is_no_yaml(text: str, line: int, message: str) -> None:
    with pytest.raises(YamlError) as refused:
        parse(text)
    assert str(refused.value).startswith(message)
    assert refused.value.line == line


def test_depth() -> None:
    assert parse("[" * DEEPEST + "]" * DEEPEST).value


@pytest.mark.parametrize("key", ["on", "null", "1", "2026-11-21", "<<"])
def test_a_strict_reader_takes_keys_that_are_text(key: str) -> None:
    assert parse(f'a: 1\n"{key}": 2\n', strict=True).value == {"a": 1, key: 2}
    with pytest.raises(YamlError, match=f"'{key}' is no text as a key") as refused:
        parse(f"a: 1\n{key}: 2\n", strict=True)
    assert refused.value.line == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [("a: &b 1\nc: *b\n", "aliases"), ("a: 1\nc: !!str 2\n", r"tags \(tag:yaml.org,2002:str\)")],
)
def test_only_a_strict_reader_refuses_aliases_and_tags(text: str, message: str) -> None:
    assert parse(text).value["c"] in (1, "2")
    with pytest.raises(YamlError, match=message) as refused:
        parse(text, strict=True)
    assert refused.value.line == 2
