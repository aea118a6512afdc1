"""The kind `delta_feed`: the change data feed of a Delta table, for a dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tidemill.errors import InputError
from tidemill.sources.source_kind import SourceContext, SourceKind, SourceWords

if TYPE_CHECKING:
    from tidemill.sources.delta_feed.source import DeltaFeed


class DeltaFeedSource(SourceWords):
    """The changes of a Delta table whose change data feed is on: its folder, or its name.

    Without `from_version` it begins with the rows that the table has then, and goes on with what
    changes.
    """

    kind: Literal["delta_feed"]
    table: str | None = None
    from_version: int | None = Field(default=None, ge=0)


def _open(words: DeltaFeedSource, context: SourceContext) -> DeltaFeed:
    from tidemill.sources.delta_feed.source import DeltaFeed

    if not words.table:
        raise InputError(
            "a delta_feed source has no table",
            where="source",
            expected="table: /folder/of/table, or table: catalog.schema.table",
        )
    return DeltaFeed(words.table, words.from_version)


KIND = SourceKind("delta_feed", "the change data feed of a Delta table", DeltaFeedSource, _open)
