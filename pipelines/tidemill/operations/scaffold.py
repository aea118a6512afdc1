"""A first pipeline: its file, some events, and its test, written where nothing stands yet; with a
dimension also some changes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from string import Template
from types import MappingProxyType

from tidemill.config.settings import Clock
from tidemill.errors import UsageError
from tidemill.features.suggestions import did_you_mean
from tidemill.features.types import identifier

TEMPLATES = Path(__file__).parent / "templates"


SOURCES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "files": {
            "$name.yaml": "pipeline.yaml",
            "events/sample.jsonl": "sample.jsonl",
            "test_$name.py": "test_pipeline.py.txt",
        },
        "cdc": {
            "$name.yaml": "cdc_pipeline.yaml",
            "events/sample.jsonl": "sample.jsonl",
            "changes/sample.jsonl": "cdc_changes.jsonl",
            "test_$name.py": "test_cdc_pipeline.py.txt",
        },
    }
)
"""What is written for each kind of source: the file's name, and its template."""


def begin(name: str, folder: Path, clock: Clock, source: str = "files") -> list[Path]:
    """Write `NAME.yaml`, `events/sample.jsonl` and `test_NAME.py` into a folder, for `cdc` also
    `changes/sample.jsonl`; return their paths.

    The events are yesterday's, so that they are not too old to be counted. UsageError when the name
    is no identifier, the source is none of SOURCES, or when one of the files is there: then none is
    written.
    """
    texts = _texts(_checked(name), clock, source)
    _refuse_existing(folder, texts)
    try:
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        expected = "a folder you may write to"
        raise UsageError(message, where=str(folder), expected=expected) from error
    return [folder / path for path in texts]


def _checked(name: str) -> str:
    try:
        return identifier(name)
    except ValueError as error:
        expected = "a name such as shop_signals: it names files and tables"
        raise UsageError(str(error), where="NAME", expected=expected) from error


def _texts(name: str, clock: Clock, source: str) -> dict[Path, str]:
    if source not in SOURCES:
        raise UsageError(
            f"unknown source {source!r}{did_you_mean(source, SOURCES)}",
            where="--source",
            expected=" or ".join(SOURCES),
        )
    day = (clock.now() - timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    words = {"name": name, "day": day.date().isoformat()}
    for at, minutes in (("day", 0), ("ten", 600), ("later", 610)):  # of its changes
        words[f"{at}_ms"] = str(int((day + timedelta(minutes=minutes)).timestamp()) * 1000)
    return {
        Path(Template(path).substitute(words)): Template(
            (TEMPLATES / template).read_text("utf-8")
        ).substitute(words)
        for path, template in SOURCES[source].items()
    }


def _refuse_existing(folder: Path, texts: dict[Path, str]) -> None:
    for path in texts:
        if (folder / path).exists():
            raise UsageError(
                "is there already, and is not overwritten",
                where=str(folder / path),
                expected="another name, or a new folder: --folder DIR",
            )
