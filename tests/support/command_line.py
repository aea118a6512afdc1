"""The command line called in this process: what it prints, and its exit code."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest import mock

from lakes import NOW
from tidemill import cli
from tidemill.config.settings import iso
from tidemill.lake.commits import failpoints


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str | None]:
        """The error that stdout holds, and nothing besides it."""
        assert list(self.json) == ["error"]
        assert list(self.json["error"]) == ["kind", "message", "where", "expected"]
        return self.json["error"]


@contextmanager
def ending_at(point: str) -> Iterator[None]:
    """Have what is done within end when it reaches a point for the first time."""
    failpoints._reached.clear()
    with mock.patch.dict("os.environ", {failpoints.VARIABLE: point}):
        yield


def call(*words: object) -> Answer:
    """`tidemill` with these words, at NOW."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["tidemill", *map(str, words)]),
        mock.patch.dict("os.environ", {"TIDEMILL_NOW": iso(NOW)}),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as end:
            assert isinstance(end.code, int)
            assert end.code
            code = end.code
    return Answer(code, out.getvalue(), err.getvalue())
