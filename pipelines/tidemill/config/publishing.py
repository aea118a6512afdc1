"""Where a pipeline's views are published to, as its file says it."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field, model_validator

from tidemill.config.yaml_loader import Declared
from tidemill.features.types import Duration
from tidemill.features.view import FeatureView
from tidemill.features.windows import duration

LEAST_MARGIN = timedelta(hours=1)


class Publishing(Declared):
    """After each refresh the online `store` is brought to gold: a file's path, or a Redis such as
    `redis://HOST:PORT/0`, `rediss://` with TLS, `redis-cluster://`; by default a file in the lake's
    folder. `views` are all by default.

    A row that is not renewed is gone after `ttl`: the longest window and a day by default, and an
    hour more than the longest window at least. `on_failure` says what a batch does when the store
    does not answer: `catch-up` goes on, and the next publish brings what is missing; `stop` ends
    the run. `username_env` and `password_env` name environment variables, `ca_file` the
    certificates of TLS. A batch gives a publish up that takes longer than `within`, as if the store
    did not answer; `tidemill publish` has no such limit. `allow_eviction` takes a Redis that throws
    keys away when it is full. With `slices` what each batch of events adds is there as soon as it
    is clean, and answers merge it.
    """

    store: str | None = None
    views: tuple[str, ...] | None = None
    ttl: Duration | None = None
    on_failure: Literal["catch-up", "stop"] = "catch-up"
    username_env: str | None = None
    password_env: str | None = None
    ca_file: str | None = None
    within: Duration = "5m"
    connect_seconds: float = Field(default=3.0, gt=0, le=60)
    answer_seconds: float = Field(default=5.0, gt=0, le=60)
    allow_eviction: bool = False
    slices: bool = False

    @model_validator(mode="after")
    def _check(self) -> Publishing:
        if self.ttl and not duration(self.ttl) > LEAST_MARGIN:
            raise ValueError(f"ttl {self.ttl} is too short: an hour and the longest window")
        return self

    def of(self, view: FeatureView) -> bool:
        """Return whether a view is published."""
        return self.views is None or view.name in self.views

    def ttl_of(self, view: FeatureView) -> timedelta | None:
        """Return a row's time to live; None for the default."""
        return duration(self.ttl) if self.ttl else None


def check(publishing: Publishing | None, views: tuple[FeatureView, ...]) -> None:
    """Raise ValueError for a view that is not the pipeline's, or whose windows outlive a row."""
    if publishing is None:
        return
    unknown = set(publishing.views or ()) - {view.name for view in views}
    if unknown:
        raise ValueError(f"publish names {sorted(unknown)[0]}, which is no view of the pipeline")
    for view in filter(publishing.of, views):
        if publishing.slices and view.has_lifetimes:
            raise ValueError(
                f"publish: slices have an end, and {view.name} has lifetimes: leave them out, or "
                "publish the view without slices"
            )
        feature = unmerged(view) if publishing.slices else None
        if feature:
            raise ValueError(
                f"publish: slices cannot merge {feature} of {view.name}, which only SQL can: leave "
                "it out, or publish the view without slices"
            )
        ttl = publishing.ttl_of(view)
        if ttl is not None and view.has_lifetimes:
            raise ValueError(
                f"publish: ttl {publishing.ttl} would lose the lifetimes of {view.name}: leave it "
                "out"
            )
        if ttl is not None and ttl < view.horizon + LEAST_MARGIN:
            raise ValueError(
                f"publish: ttl {publishing.ttl} is too short for {view.name}: at least its longest "
                f"window {view.windows[0].text} and an hour"
            )


def unmerged(view: FeatureView) -> str | None:
    """Return the first feature of a view that only SQL merges; None where there is none."""
    return next((column.name for column in view.shown if column.finish is None), None)
