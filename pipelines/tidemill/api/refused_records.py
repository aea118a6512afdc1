"""Refused records of a lake: list them, look at one, send repaired ones through again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from tidemill.api.holding import Access
from tidemill.api.moments import moment
from tidemill.operations import replay as replaying
from tidemill.quality import quarantine


class Quarantine:
    """The records that clean refused; `lake.quarantine` is one."""

    def __init__(self, access: Access):
        """Read, and replay into, the lake."""
        self._access = access

    def records(self, since: datetime | str | None = None, reason: str | None = None) -> DataFrame:
        """Return refused records, and `replayed`, whether a repaired one was landed; those that
        came since a time, those with a reason, such as `missing:gti`, or `missing`."""
        after = moment(since, "since") if since is not None else None
        return quarantine.refused(self._access.reader(), after, reason)

    def summary(
        self, since: datetime | str | None = None, reason: str | None = None
    ) -> dict[str, Any]:
        """Return `{pipeline, records, open, replayed, reasons, newest}`: each reason with how many
        records it refused, and the newest open records."""
        after = moment(since, "since") if since is not None else None
        return quarantine.listed(self._access.reader(), after, reason)

    def record(self, record_id: str) -> dict[str, Any]:
        """Return one refused record whole: payload, position, reasons, batch; UsageError for an
        unknown one."""
        return quarantine.shown(self._access.reader(), record_id)

    def export(
        self,
        file: str | Path,
        since: datetime | str | None = None,
        reason: str | None = None,
    ) -> int:
        """Write the open records into a file as lines to repair, for `replay`; return how many."""
        after = moment(since, "since") if since is not None else None
        return quarantine.export(self._access.reader(), Path(file), after, reason)

    def replay(
        self,
        file: str | Path | None = None,
        *,
        ids: Sequence[str] = (),
        fields: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Send repaired records through again, each once: those of a file, or those called `ids`
        with other values for some `fields`. Needs `write=True`.

        Return `{landed, already, refused, ...}`; the next run takes the landed ones in.
        """
        repaired = replaying.from_file(Path(file)) if file is not None else []
        lake = self._access.writer("replay")
        if file is None:
            repaired = replaying.by_ids(lake, ids, fields or {})
        return replaying.replay(lake, repaired, self._access.opening.clock)
