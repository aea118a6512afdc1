"""The kind `generator`: made-up events, the same again from the same seed and start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field, WithJsonSchema

from tidemill.features.suggestions import did_you_mean
from tidemill.sources.generator.kinds import ENGAGEMENT, KINDS
from tidemill.sources.generator.mix import DEFAULT_MIX
from tidemill.sources.source_kind import SourceContext, SourceKind, SourceWords

if TYPE_CHECKING:
    from tidemill.sources.generator.source import Generator


def _is_kind(text: str) -> str:
    if text not in KINDS:
        raise ValueError(f"unknown events {text!r}{did_you_mean(text, KINDS)}")
    return text


Events = Annotated[str, AfterValidator(_is_kind), WithJsonSchema({"enum": [*KINDS]})]


class GeneratorSource(SourceWords):
    """Made-up events of one kind: the same seed and start give the same events. `late` is the share
    of them that come one minute to three hours after their time."""

    kind: Literal["generator"]
    events: Events = ENGAGEMENT
    seed: int = 7
    rate: int = Field(default=500, ge=1, le=1_000_000)
    minutes: int = Field(default=1560, ge=1)
    minutes_per_batch: int = Field(default=130, ge=1)
    late: float = Field(default=DEFAULT_MIX.late, ge=0, le=0.5)
    start: AwareDatetime | None = None


def _open(words: GeneratorSource, context: SourceContext) -> Generator:
    """Return the generator; without a start of its own it goes on from its first one."""
    from tidemill.sources.generator.source import Generator

    mix = replace(DEFAULT_MIX, late=words.late)
    ours = context.known.get("kind") == words.kind
    before = GeneratorSource(kind="generator", start=context.known["start"] if ours else None)
    return Generator(
        start=words.start or before.start,
        seed=words.seed,
        rate=words.rate,
        minutes=words.minutes,
        minutes_per_batch=words.minutes_per_batch,
        mix=mix,
        now=context.now,
        events=words.events,
        most_records=context.max_records,
    )


KIND = SourceKind("generator", "made-up events, as many a minute as asked", GeneratorSource, _open)
