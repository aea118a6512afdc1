"""The error of the last run: kept, read again, forgotten when a run ends well."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import call
from lakes import NOW
from runs import Small
from tidemill.config.settings import Clock, Place
from tidemill.errors import QueryError, SourceError
from tidemill.monitoring.last_error import NAME, kept, newest

FACTS = {"kind": "source", "message": "no broker", "where": "source", "expected": "one"}


def fail(place: Place, pipeline: str) -> None:
    error = SourceError("no broker", where="source", expected="one")
    with pytest.raises(SourceError), kept(place, pipeline, Clock(NOW)):
        raise error


def test_until_a_run_ends_well(tmp_path: Path) -> None:
    place = Place(tmp_path)
    fail(place, "a")
    fail(place, "b")
    assert newest(place, "a") == {"at": "2026-11-21T12:00:00Z", **FACTS}
    with kept(place, "a", Clock(NOW)):
        pass
    assert (newest(place, "a"), newest(place, "b") is None) == (None, False)
    with kept(place, "b", Clock(NOW)):
        pass
    assert not [*tmp_path.iterdir()]


def test_other_errors_and_broken_files_are_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with pytest.raises(ZeroDivisionError), kept(place, "a", Clock(NOW)):
        raise ZeroDivisionError
    assert newest(place, "a") is None
    for text in ("{", "[]", "1"):
        (tmp_path / NAME).write_text(text)
        assert newest(place, "a") is None
    fail(place, "a")
    assert newest(place, "a") is not None


def test_a_run_keeps_it(small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise QueryError("batch 3 of clean failed", where="clean", expected="another batch")

    root = small.copy(tmp_path / "lake")
    words = ("--source", "files", "--input", small.input, "--once", "--root", root)
    with monkeypatch.context() as patch:
        patch.setattr("tidemill.api.observed_run.run", fails)
        answer = call("run", "engagement", *words, "--json")
    assert answer.code == 3
    found = newest(Place(root), "engagement")
    assert found is not None
    assert {name: found[name] for name in answer.error} == answer.error
