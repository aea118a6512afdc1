"""A rebuild of a part under way: what each of them needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.errors import LakeError
from tidemill.features import FeatureView
from tidemill.features.windows import BEGINNING
from tidemill.lake.catalog import Lake
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.integrity import coverage
from tidemill.lake.open import open_for_writing
from tidemill.lake.schema import evolution
from tidemill.operations.rebuild.wanted import Wanted
from tidemill.pipeline.connection import Opening
from tidemill.pipeline.observer import Callback, Tell
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.runner import Recorder, Stop, finish
from tidemill.sources.null_source import Absent

Say = Callable[[str], None]


@dataclass
class Work:
    """A rebuild of a part under way: how to open the lake, what is wanted, and whom to tell."""

    opening: Opening
    definition: PipelineDefinition
    wanted: Wanted
    say: Say
    tell: Tell
    stop: Stop = field(default_factory=Stop)

    def lake(self, definition: PipelineDefinition, filled_from: datetime | None = None) -> Lake:
        """Return the lake, opened for writing. Views whose buckets lack events are no hindrance:
        what is not filled is not refreshed, and the next command says what it needs."""
        return open_for_writing(
            self.opening.session(),
            self.opening.place,
            definition,
            filled_from=filled_from,
            filled=[view.name for view in definition.views],
        )

    @property
    def made_from(self) -> datetime | None:
        """From when on no view is refused for buckets that it needs and that expired: they are made
        again or, while features and views are made, left to the next command. None: every view
        is."""
        if self.wanted.views or self.wanted.features:
            return BEGINNING
        return None if self.wanted.keys else self.wanted.since

    def whole(self, lake: Lake) -> list[FeatureView]:
        """Return the lake's views of which not all buckets are to be made: they lack no event that
        feature has read."""
        late = coverage.late(lake)
        return [
            view
            for view in lake.pipeline.views
            if view.name not in late and evolution.change(lake, view).kind != "views"
        ]

    def ready(self, lake: Lake) -> list[FeatureView]:
        """Return those of them whose buckets hold what their windows need: gold can follow."""
        return [v for v in self.whole(lake) if evolution.change(lake, v).kind != "since"]

    def pipeline(self, lake: Lake) -> Pipeline:
        """Return the pipeline of the lake, without its source."""
        return Pipeline(lake, Absent(), self.opening.clock, lake.pipeline.clock)

    def catch_up(self, lake: Lake) -> None:
        """Have the feature query read every event that there is, for the views that lack none and
        those that are filled: the tables of others may not be as declared."""
        followed = {*self.wanted.views, *(view.name for view in self.whole(lake))}
        views = tuple(view for view in lake.pipeline.views if view.name in followed)
        caught_up = lake.pipeline.model_copy(update={"views": views})
        pipeline = replace(self.pipeline(replace(lake, pipeline=caught_up)), refreshes="never")
        pipeline.claim(("feature",))
        recorder = Recorder(pipeline, [Callback(self.tell)])
        finish("feature", pipeline, self.stop, recorder)
        recorder.record()

    def refuse_stop(self, name: str) -> None:
        """Raise LakeError once a stop was asked for."""
        if self.stop:
            raise LakeError("stopped half-way", where=name, expected="the same rebuild again")

    def chunk_written(self, lake: Lake, name: str, words: str) -> int:
        """Say how many rows the newest commit wrote; return them."""
        reach("rebuild.chunk_written")
        written = lake.commits(name, 1)[0].metric("numOutputRows")
        self.say(f"  {words}  {written:,} rows")
        return written
