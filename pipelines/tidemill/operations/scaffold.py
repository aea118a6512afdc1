"""A first pipeline: its file, some events, and its test, written where nothing stands yet."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from string import Template

from tidemill.config.settings import Clock
from tidemill.errors import UsageError
from tidemill.features.types import identifier

TEMPLATES = Path(__file__).parent / "templates"


def begin(name: str, folder: Path, clock: Clock) -> list[Path]:
    """Write `NAME.yaml`, `events/sample.jsonl` and `test_NAME.py` into a folder; return their
    paths.

    The events are yesterday's, so that they are not too old to be counted. UsageError when the name
    is no identifier, or when one of the files is there: then none is written.
    """
    texts = _texts(_checked(name), clock)
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


def _texts(name: str, clock: Clock) -> dict[Path, str]:
    day = (clock.now() - timedelta(days=1)).date().isoformat()
    templates = {
        Path(f"{name}.yaml"): "pipeline.yaml",
        Path("events", "sample.jsonl"): "sample.jsonl",
        Path(f"test_{name}.py"): "test_pipeline.py.txt",
    }
    return {
        path: Template((TEMPLATES / template).read_text("utf-8")).substitute(name=name, day=day)
        for path, template in templates.items()
    }


def _refuse_existing(folder: Path, texts: dict[Path, str]) -> None:
    for path in texts:
        if (folder / path).exists():
            raise UsageError(
                "is there already, and is not overwritten",
                where=str(folder / path),
                expected="another name, or a new folder: --folder DIR",
            )
