"""A first pipeline: its file, some events, and its test, written where nothing stands yet."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from string import Template

from tidemill.config.settings import Clock
from tidemill.errors import UsageError
from tidemill.features.suggestions import did_you_mean
from tidemill.features.types import identifier

TEMPLATES = Path(__file__).parent / "templates"


def begin(name: str, folder: Path, clock: Clock, source: str = "files") -> list[Path]:
    """Write `NAME.yaml`, `events/sample.jsonl` and `test_NAME.py` into a folder; return their
    paths.

    The pipeline reads a source of the kind; its test reads the sample. The events are yesterday's,
    so that they are not too old to be counted. UsageError when the name is no identifier, when
    there is no template for the kind, or when one of the files is there: then none is written.
    """
    texts = _texts(_checked(name), clock, _template_of(source))
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
    """Return the kinds of sources that a first pipeline may read."""
    return sorted(path.stem.removeprefix("source_") for path in TEMPLATES.glob("source_*.yaml"))


def _template_of(kind: str) -> Template:
    """Return the words of a source, of its clock too, in a pipeline's file."""
    if kind not in kinds():
        message = f"no first pipeline reads {kind!r}{did_you_mean(kind, kinds())}"
        raise UsageError(message, where="--source", expected=", ".join(kinds()))
    return Template((TEMPLATES / f"source_{kind}.yaml").read_text("utf-8"))


def _texts(name: str, clock: Clock, source: Template) -> dict[Path, str]:
    day = (clock.now() - timedelta(days=1)).date().isoformat()
    words = {"name": name, "day": day, "source": source.substitute(name=name)}
    templates = {
        Path(f"{name}.yaml"): "pipeline.yaml",
        Path("events", "sample.jsonl"): "sample.jsonl",
        Path(f"test_{name}.py"): "test_pipeline.py.txt",
    }
    return {
        path: Template((TEMPLATES / template).read_text("utf-8")).substitute(words)
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
