"""Every check of a bundle, in order."""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.bundle import files, references, shapes, tasks, writers
from tidemill.bundle.finding import Finding
from tidemill.bundle.project import Bundle
from tidemill.bundle.tasks import Refused


def check(bundle: Bundle, refused: Refused) -> list[Finding]:
    """Yield what is wrong in the bundle's files, sorted by file and line; needs no Spark.

    A file that cannot be read ends it: what other files name in it would all be missing.
    """
    shapes.require()
    unread = [finding for document in bundle.documents for finding in document.findings]
    if unread:
        return _sorted(unread)
    return _sorted(
        [
            *shapes.check(bundle),
            *references.check(bundle),
            *files.check(bundle),
            *tasks.check(bundle, refused),
            *writers.check(bundle),
        ]
    )


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(set(findings), key=lambda f: (f.file, f.line, f.message))
