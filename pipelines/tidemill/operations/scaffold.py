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
CDC = "cdc"
FILES: Mapping[str, str] = MappingProxyType(
    {
        "$name.yaml": "pipeline.yaml",
        "events/sample.jsonl": "sample.jsonl",
        "test_$name.py": "test_pipeline.py.txt",
    }
)
"""What is written: the file's name, and its template."""

WITH_A_DIMENSION: Mapping[str, str] = MappingProxyType(
    {
        "$name.yaml": "cdc_pipeline.yaml",
        "events/sample.jsonl": "sample.jsonl",
        "changes/sample.jsonl": "cdc_changes.jsonl",
        "test_$name.py": "test_cdc_pipeline.py.txt",
    }
)
"""The same for `cdc`: events from files, and a table's changes beside them."""


def begin(name: str, folder: Path, clock: Clock, source: str = "files") -> list[Path]:
    """Write `NAME.yaml`, `events/sample.jsonl` and `test_NAME.py` into a folder, for `cdc` also
    `changes/sample.jsonl`; return their paths.

    The pipeline reads a source of the kind; its test reads the sample. The events are yesterday's,
    so that they are not too old to be counted. UsageError when the name is no identifier, when
    there is no template for the kind, or when one of the files is there: then none is written.
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


def kinds() -> list[str]:
    """Return the kinds of sources that a first pipeline may read, and `cdc`."""
    sources = (path.stem.removeprefix("source_") for path in TEMPLATES.glob("source_*.yaml"))
    return sorted([*sources, CDC])


def _texts(name: str, clock: Clock, source: str) -> dict[Path, str]:
    if source not in kinds():
        message = f"no first pipeline reads {source!r}{did_you_mean(source, kinds())}"
        raise UsageError(message, where="--source", expected=", ".join(kinds()))
    words = _words(name, clock)
    if source != CDC:
        words["source"] = _filled(f"source_{source}.yaml", words)
    files = WITH_A_DIMENSION if source == CDC else FILES
    return {
        Path(Template(path).substitute(words)): _filled(template, words)
        for path, template in files.items()
    }


def _filled(template: str, words: Mapping[str, str]) -> str:
    return Template((TEMPLATES / template).read_text("utf-8")).substitute(words)


def _words(name: str, clock: Clock) -> dict[str, str]:
    """Return what stands in the templates: the name, yesterday, and times of it in ms."""
    day = (clock.now() - timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    times = (("day", 0), ("ten", 600), ("later", 610))  # of the changes
    epochs = {
        f"{at}_ms": str(int((day + timedelta(minutes=minutes)).timestamp()) * 1000)
        for at, minutes in times
    }
    return {"name": name, "day": day.date().isoformat(), **epochs}


def _refuse_existing(folder: Path, texts: dict[Path, str]) -> None:
    for path in texts:
        if (folder / path).exists():
            raise UsageError(
                "is there already, and is not overwritten",
                where=str(folder / path),
                expected="another name, or a new folder: --folder DIR",
            )
