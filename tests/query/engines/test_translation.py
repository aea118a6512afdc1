"""A statement is translated once, until its tables have other columns."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tidemill.query.engines import translation
from tidemill.query.engines.translation import NoSuchTableError, translate

TEXT = "SELECT * FROM numbers WHERE n > 1"


def test_a_text_is_read_again_when_its_tables_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "_kept", {})
    tables: dict[str, Mapping[str, str]] = {"numbers": {"n": "bigint", "text": "string"}}
    first = translate(TEXT, tables.get)
    assert translate(TEXT, tables.get) is first
    tables["numbers"] = {"text": "string", "n": "bigint"}  # a star takes them in their order
    assert first.names == ("n", "text") and translate(TEXT, tables.get).names == ("text", "n")
    tables["numbers"] = {"n": "double"}
    assert translate(TEXT, tables.get).types == ("double",)
    del tables["numbers"]
    with pytest.raises(NoSuchTableError):
        translate(TEXT, tables.get)


def test_a_process_that_goes_on_keeps_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "_kept", {})
    for number in range(translation._MOST_KEPT + 2):
        translate(f"SELECT n FROM numbers WHERE n > {number}", {"numbers": {"n": "int"}}.get)
    assert len(translation._kept) == 2
