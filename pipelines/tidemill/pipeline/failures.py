"""What went wrong, in a sentence: Spark's long errors made short, never hidden.

The whole error stays the cause (`--verbose` prints it).
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tidemill import errors
from tidemill.config import dataflow
from tidemill.config.settings import Place
from tidemill.errors import DiskFullError, LakeError, QueryError, RunError, TidemillError
from tidemill.sources.files.source import failing_file
from tidemill.sources.registry import kinds

_FULL = ("No space left on device", "File too large", "Disk quota exceeded")
_NOISE = (
    "An error occurred while calling",
    "at ",
    "===",
    "Identifier",
    "JVM stacktrace",
    "Traceback",
    "File ",
    "+-",
    "Caused by: org",
)
_OURS = re.compile(r"tidemill\.errors\.(\w+Error): (.+)")
# An error's text: `<where>: <what was found> (expected: <what to do>)`, where a name, a path, a URL
# or a model.
_PARTS = re.compile(
    r"(?:(?P<where>(?:view |https?://[\w.:-]+|models:)?[\w./%@-]+): )?"
    r"(?P<found>.+?)(?: \(expected: (?P<expected>.+)\))?"
)
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] [^\n]+")
_BYPASS = re.compile(r" If necessary set \S+ to \S+ to bypass this error\.?")


def explained(error: BaseException, what: str, place: Place | None = None) -> TidemillError:
    """Return one of our errors for any: `what` names what was being done, `place` the lake."""
    if isinstance(error, TidemillError):
        return error
    texts = _texts(error)
    if ours := _of_another_process(texts, what):
        return ours
    text = "\n".join(texts)
    if any(words in text for words in _FULL):
        return _disk_full(place)
    if "Read-only file system" in text or "Permission denied" in text:
        expected = "a folder you may write to"
        return LakeError("cannot be written", where=str(place or what), expected=expected)
    file = failing_file(text)
    if file:
        return QueryError(
            f"{what} cannot read it: {_first_line(text)}",
            where=file,
            expected="a whole file of the folder's format: mend or move it away, then run again",
        )
    if fault := _of_source(text):
        return fault
    kind = QueryError if dataflow.is_query(what) else RunError
    return kind(f"{what} failed: {_first_line(_said(error) or type(error).__name__)}")


def sentence(error: BaseException) -> str:
    """Return what Spark says went wrong, without its advice to switch the check off."""
    text = "\n".join(_texts(error))
    named = _CONDITION.search(text)
    return _BYPASS.sub("", named[0] if named else _first_line(text))[:400]


def _of_source(text: str) -> TidemillError | None:
    """Return our own error where a kind of source knows what Spark's text means."""
    faults = (kind.explain(text) for kind in kinds().values() if kind.explain)
    return next((fault for fault in faults if fault), None)


def _of_another_process(texts: list[str], what: str) -> TidemillError | None:
    """Return our own error that a batch function raised: Spark hands on its traceback alone, and
    Spark Connect hands it on whole in its error and cut off in the cause."""
    for text in texts:
        named = [one for one in _OURS.findall(text) if hasattr(errors, one[0])]
        if named:
            break
    else:
        return None
    kind, said = named[-1]
    parts = _PARTS.fullmatch(said.strip())
    assert parts
    error: TidemillError = getattr(errors, kind)(
        parts["found"], where=parts["where"] or what, expected=parts["expected"]
    )
    return error


def _said(error: BaseException) -> str:
    """Return the error's text; one of py4j asks the JVM for it, which may be gone."""
    try:
        return str(error)
    except OSError:
        return f"Spark's Java process is gone ({type(error).__name__})"


def _texts(error: BaseException) -> list[str]:
    """Return the texts of the error and its causes, the error's own first."""
    texts: list[str] = []
    current: BaseException | None = error
    while current is not None and len(texts) < 10:
        texts.append(_said(current))
        current = current.__cause__ or current.__context__
    return texts


def _disk_full(place: Place | None) -> DiskFullError:
    root = place.root if place and place.root else Path.cwd()
    free = shutil.disk_usage(root).free // 2**20 if root.exists() else 0
    return DiskFullError(
        f"the disk is full, or a file grew over a limit ({free} MB free)",
        where=str(root),
        expected="free space, then run again: it continues from the last commit",
    )


def _first_line(text: str) -> str:
    """Return the line that says what went wrong: a Python traceback's last one, else the first."""
    _, python, trace = text.partition("Return Message: Traceback")
    lines = [line.strip().removeprefix(": ") for line in text.splitlines()]
    if python:
        named = [line for line in trace.splitlines() if re.match(r"[\w.]+(: |$)", line)]
        lines = [*named[-1:], *lines]
    reasons = [line for line in lines if line and not line.startswith(_NOISE)]
    return (reasons or ["no reason was given"])[0][:400]
