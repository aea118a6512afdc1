"""The words of a source in a pipeline's file, whatever its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import core_schema

from tidemill.sources.registry import kinds
from tidemill.sources.source_kind import SourceWords


class _OfAnyKind:
    """The words of a source, of a kind that is known when a file is read first, not before: a
    package that brings a kind may import Tidemill."""

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Return the schema of the kinds' own words, told apart by `kind`."""
        words = tuple(kind.words for kind in kinds().values())
        return handler.generate_schema(
            Annotated[Union[words], Field(discriminator="kind")]  # noqa: UP007
        )


if TYPE_CHECKING:
    SourceOfKind = SourceWords
else:
    SourceOfKind = _OfAnyKind
