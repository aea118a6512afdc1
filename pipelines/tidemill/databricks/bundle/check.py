"""Every check of a bundle, in order."""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.databricks.bundle import access, field_types, named_files, references, tasks, writers
from tidemill.databricks.bundle.issue import Finding
from tidemill.databricks.bundle.project import Bundle
from tidemill.databricks.bundle.tasks import Refused


def check(bundle: Bundle, refused: Refused) -> list[Finding]:
    """Return what is wrong in the bundle's files, sorted by file and line; needs no Spark.

    A file that cannot be read ends it: what other files name in it would all be missing.
    """
    field_types.require()
    unread = [finding for document in bundle.documents for finding in document.findings]
    if unread:
        return _sorted(unread)
    return _sorted(
        [
            *field_types.check(bundle),
            *references.check(bundle),
            *named_files.check(bundle),
            *access.check(bundle),
            *tasks.check(bundle, refused),
            *writers.check(bundle),
        ]
    )


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(set(findings), key=lambda f: (f.file, f.line, f.message))
