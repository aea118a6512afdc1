"""A published view with what its answers need, worked out once for each publish."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from tidemill.config.settings import exact
from tidemill.errors import RequestError
from tidemill.features.suggestions import did_you_mean
from tidemill.online.answers.feature_request import ViewQuestion
from tidemill.online.published_view import PublishedView
from tidemill.online.slices.slice_values import Merger

_FILTERS = ("binary", "struct<fingerprint:")  # bloom, cuckoo: what `contains` asks


@dataclass(frozen=True)
class ServedView:
    """A view as the store last said it is; another takes its place after each publish.

    Without slices its answers are gold's, and no request asks the store for any.
    """

    state: PublishedView
    has_slices: bool = False
    mergers: dict[str, Merger] = field(default_factory=dict, compare=False)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each feature among a row's values."""
        return {name: place for place, name in enumerate(self.state.features)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The features in their order."""
        return tuple(self.state.features)

    @cached_property
    def filters(self) -> frozenset[str]:
        """The features that are filters, which `contains` asks."""
        types = self.state.features.items()
        return frozenset(name for name, type_ in types if _is_filter(type_))

    @cached_property
    def as_of(self) -> str:
        """The end of the windows, as answers have it."""
        return exact(self.state.as_of)

    def age(self, now: datetime) -> float:
        """Return the seconds since the end of the windows; 0 before it, as with a wall clock the
        windows end up to a minute ahead."""
        return max(0.0, (now - self.state.as_of).total_seconds())

    def check(self, question: ViewQuestion) -> None:
        """Raise RequestError (422) for a feature that the view does not have, or that is no filter
        where `contains` asks it."""
        for name in question.features or ():
            if name not in self.places:
                raise self._wrong(f"has no feature {name!r}", name, self.names, "features")
        for name in question.contains:
            if name not in self.filters:
                kind = "filter" if name in self.places else "feature"
                raise self._wrong(f"has no {kind} {name!r}", name, self.filters, "contains")

    def _wrong(
        self, text: str, name: str, known: tuple[str, ...] | frozenset[str], where: str
    ) -> RequestError:
        hint = did_you_mean(name, sorted(known))
        return RequestError(f"{self.state.view} {text}{hint}", status=422, where=where)


def _is_filter(type_: str) -> bool:
    return type_.lower().replace(" ", "").startswith(_FILTERS)
