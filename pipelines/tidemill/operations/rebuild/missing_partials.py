"""What the buckets lack for the features that a rebuild names, and the pipeline without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.errors import LakeError, UsageError
from tidemill.features import FeatureView
from tidemill.features.columns import partials_of
from tidemill.features.suggestions import did_you_mean
from tidemill.lake.catalog import Lake
from tidemill.lake.integrity import coverage
from tidemill.lake.open import late_as_found
from tidemill.lake.schema import evolution
from tidemill.lake.schema.verification import absent_of

Lacking = Mapping[str, tuple[str, ...]]


def partials(lake: Lake, features: Iterable[str]) -> Lacking:
    """Return, for each view of the lake's pipeline by name, the partials of the named features and
    those that its buckets do not hold, none where there are no buckets yet, or where all of them
    are to be made. UsageError for an unknown feature, or one that lacks as well and is not named;
    LakeError for one of such views alone."""
    names, absent = tuple(features), absent_of(lake)
    late = late_as_found(lake, absent)
    there = [
        view
        for view in lake.pipeline.views
        if view.name not in late and lake.tables.of(view).buckets.name not in absent
    ]
    changes = {change.view: change for change in evolution.changes(lake, there)}
    remade = {name: change for name, change in changes.items() if change.kind == "views"}
    _check_named(lake, names, late, remade)
    nothing = {view.name: () for view in lake.pipeline.views}
    return nothing | {
        view.name: _of_view(view, changes[view.name], names)
        for view in there
        if view.name not in remade
    }


def _check_named(
    lake: Lake,
    names: Iterable[str],
    late: Mapping[str, str],
    remade: Mapping[str, evolution.Change],
) -> None:
    """Refuse a name that is no feature's, or a feature's of views alone that are late or need all
    of their buckets."""
    known = {view.name: [*map(evolution.name_of, view.features)] for view in lake.pipeline.views}
    every = [name for features in known.values() for name in features]
    for name in names:
        if name not in every:
            hint = did_you_mean(name, every)
            raise UsageError(f"unknown feature {name!r}{hint}", where="--features")
        of = [view for view, features in known.items() if name in features]
        if all(view in late or view in remade for view in of):
            coverage.refuse(lake.pipeline, {view: late[view] for view in of if view in late})
            evolution.refuse(lake.pipeline.command_name, remade[of[0]])


def _of_view(
    view: FeatureView, change: evolution.Change, features: tuple[str, ...]
) -> tuple[str, ...]:
    if change.kind == "bronze":
        raise LakeError(change.why, where=f"view {view.name}", expected="--from bronze")
    unnamed = [name for name in change.features if name not in features]
    if unnamed:
        every = ",".join(change.features)
        raise UsageError(
            f"the buckets hold nothing for {', '.join(unnamed)} either",
            where="--features",
            expected=f"--features {every}",
        )
    named = (f for f in view.features if evolution.name_of(f) in features)
    made = (p.name for f in named for p in partials_of(f, view.types, view.event_time))
    lacking = tuple(dict.fromkeys((*change.missing, *made)))
    if any(evolution.held(view, feature, lacking) for feature in view.features):
        return lacking
    return change.missing or lacking  # what the only feature has stays, so that a view is left


def without(definition: PipelineDefinition, lacking: Lacking) -> PipelineDefinition:
    """Return the pipeline with the features that the buckets hold, which can be run as it is."""
    return definition.model_copy(
        update={"views": tuple(_held(view, lacking[view.name]) for view in definition.views)}
    )


def _held(view: FeatureView, lacking: tuple[str, ...]) -> FeatureView:
    held = (evolution.held(view, feature, lacking) for feature in view.features)
    kept = tuple(feature for feature in held if feature is not None)
    if not lacking:
        return view
    if not kept:
        raise LakeError(
            "the buckets hold nothing that the view declares",
            where=f"view {view.name}",
            expected="--from bronze",
        )
    fields = {name: getattr(view, name) for name in type(view).model_fields}
    return FeatureView.model_validate({**fields, "features": kept})
