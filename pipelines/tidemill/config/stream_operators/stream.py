"""Streams, as a pipeline's file declares them: rows that follow the events, in their own tables.

streams:
  - name: attribution                    # the table's name
    join:
      kind: left                         # highlights without a select too
      left: {name: highlight, where: "event_type = 'highlight'", watermark: 3h}
      right: {name: select, where: "event_type = 'select'", watermark: 3h}
      keys: [profile_id, gti]
      within: 1h
    max_state_rows: 5000000
  - name: first_plays
    distinct: {keys: [profile_id, gti], watermark: 1h}
  - name: visits
    sessions: {keys: [profile_id], gap: 30m, watermark: 10m, page: gti}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from pydantic import Field, model_validator

from tidemill.config.stream_operators.distinct import Distinct
from tidemill.config.stream_operators.inputs import Input
from tidemill.config.stream_operators.join import Join
from tidemill.config.stream_operators.sessions import Sessions
from tidemill.config.yaml_loader import Declared
from tidemill.features.checks import Misdeclared
from tidemill.features.types import RESERVED, Identifier
from tidemill.features.view import FeatureView

# How tables and SQL views end that a pipeline makes by itself, see `lake.tables`.
TAKEN = (
    "_bronze _quarantine _events _replays _alerts _buckets _hours _arrivals _features _history "
    "_dimension _refused _current _status _ticks"
).split()
OPERATORS = ("join", "distinct", "sessions")
OWN = ("matched", "seconds_between")
OF_SESSIONS = (
    "session_start session_end closes_at closed page_views pages_visited length bounce first_page "
    "last_page path session_day"
).split()


class Stream(Declared):
    """Rows that follow the events by one operator, in the table `name`: a `join` of the events with
    themselves or the `distinct` ones, appended as they are known for sure; `sessions`, which are
    there while they go on.

    The state of `join` and `distinct` holds what they wait for. With `max_state_rows` the pipeline
    stops when the state holds more.
    """

    name: Identifier
    join: Join | None = None
    distinct: Distinct | None = None
    sessions: Sessions | None = None
    max_state_rows: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _check(self) -> Stream:
        if len([word for word in OPERATORS if getattr(self, word)]) != 1:
            raise Misdeclared(f"stream {self.name} has one of {', '.join(OPERATORS)}")
        if self.sessions and self.max_state_rows:
            raise Misdeclared("sessions have no state, so no limit of it", "max_state_rows")
        return self

    @property
    def word(self) -> str:
        """The word of its operator."""
        return next(word for word in OPERATORS if getattr(self, word))

    @property
    def operator(self) -> Join | Distinct | Sessions:
        """What makes the rows."""
        operator: Join | Distinct | Sessions = getattr(self, self.word)
        return operator

    @property
    def inputs(self) -> Mapping[str, Input]:
        """The events that it reads, by the names of its inputs."""
        return self.operator.inputs

    @property
    def kept(self) -> Mapping[str, timedelta]:
        """How long the state keeps an event of each input, counted from the newest event."""
        return self.operator.kept

    @property
    def definition(self) -> str:
        """The operator's words, by which a checkpoint and a table know which rows they have."""
        return self.operator.model_dump_json(exclude_defaults=True)

    def __hash__(self) -> int:
        """Return a hash by the name alone: its table's."""
        return hash(self.name)


def checked(
    streams: Iterable[Stream], views: Sequence[FeatureView], others: Iterable[str]
) -> tuple[Stream, ...]:
    """Return the streams as they were understood; Misdeclared for names that are taken, and for
    operators that cannot be made of the pipeline's events. `others` are further names."""
    taken = {name.lower() for name in (*(view.name for view in views), *others)}
    types = {name: views[0].types[name] for name in views[0].event_schema}
    found: list[Stream] = []
    for place, stream in enumerate(streams):
        name = stream.name.lower()
        if name in taken:
            message = f"stream {stream.name!r} is called as a view, a dimension or another stream"
            raise Misdeclared(message, "streams", place, "name")
        ends = [end for end in TAKEN if name.endswith(end)]
        if ends or name.startswith("tidemill_"):
            message = f"a stream's name may not {'end' if ends else 'begin'} with "
            raise Misdeclared(message + (*ends, "tidemill_")[0], "streams", place, "name")
        taken.add(name)
        word = stream.word
        operator = stream.operator.checked(types, "streams", place, word)
        found.append(stream.model_copy(update={word: operator}))
        _refuse_columns(found[-1], views[0], place)
    return tuple(found)


def _refuse_columns(stream: Stream, view: FeatureView, place: int) -> None:
    """Raise Misdeclared where two columns of the stream's rows would have one name."""
    own = [view.event_time, *RESERVED]
    if stream.join:
        sides = stream.join.sides
        own += OWN
        names = [
            *stream.join.keys,
            *(f"{side.name}_{end}" for side in sides for end in ("at", "record_id")),
            *(f"{side.name}_{column}" for side in sides for column in side.columns),
        ]
    elif stream.sessions:
        own, names = [*RESERVED, *OF_SESSIONS], [*stream.sessions.keys]
    else:
        assert stream.distinct is not None
        names = [*stream.distinct.keys, *stream.distinct.columns]
    seen = {name.lower() for name in own}
    for name in names:
        if name.lower() in seen:
            raise Misdeclared(
                f"two columns of stream {stream.name} would be called {name}", "streams", place
            )
        seen.add(name.lower())
