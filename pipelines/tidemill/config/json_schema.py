"""The JSON Schema of a pipeline file and of its quality file, with which an editor completes and
checks one as it is written.

It says less than `read` checks: whether columns, types and windows go together is seen when the
file is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.quality_file import Rules

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def pipeline_schema() -> dict[str, Any]:
    """Return the schema of a pipeline's file, the installed aggregates included."""
    schema = PipelineDefinition.model_json_schema(by_alias=True)
    return {"$schema": DIALECT, **_strict(schema), "title": "A Tidemill pipeline"}


def quality_schema() -> dict[str, Any]:
    """Return the schema of a pipeline's quality file."""
    schema = Rules.model_json_schema(by_alias=True)
    return {"$schema": DIALECT, **_strict(schema), "title": "The quality of a Tidemill pipeline"}


def _strict(part: Any) -> Any:
    """Return the schema without the titles that repeat a word, and with mappings that take no other
    names than their patterns allow."""
    if isinstance(part, list):
        return [_strict(one) for one in part]
    if not isinstance(part, Mapping):
        return part
    kept = {word: _strict(one) for word, one in part.items() if not _repeats(word, one)}
    if "patternProperties" in kept:
        kept.pop("propertyNames", None)
        kept["additionalProperties"] = False
    return kept


def _repeats(word: str, said: Any) -> bool:
    return word == "title" and isinstance(said, str)
