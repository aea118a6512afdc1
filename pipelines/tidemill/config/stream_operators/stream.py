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
  - name: known_profiles
    span: {keys: [profile_id, event_type]}
  - name: visits
    sessions: {keys: [profile_id], gap: 30m, watermark: 10m, page: gti}
  - name: active_profiles
    totals: {length: 5m, watermark: 10m, compute: {profiles: {approx_distinct: profile_id}}}
  - name: spells
    process:
      {by: activity_spells, keys: [profile_id], watermark: 10m, options: {of: gti, timeout: 30m}}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from pydantic import Field, model_validator

from tidemill.config.stream_operators.distinct import Distinct
from tidemill.config.stream_operators.inputs import Input
from tidemill.config.stream_operators.join import Join
from tidemill.config.stream_operators.process import Process
from tidemill.config.stream_operators.sessions import Sessions
from tidemill.config.stream_operators.span import Span
from tidemill.config.stream_operators.window_totals import Totals
from tidemill.config.yaml_loader import Declared
from tidemill.features.checks import Misdeclared
from tidemill.features.types import RESERVED, Identifier
from tidemill.features.view import FeatureView

# How tables and SQL views end that a pipeline makes by itself, see `lake.tables`.
TAKEN = (
    "_bronze _quarantine _events _replays _alerts _buckets _hours _arrivals _features _history "
    "_dimension _refused _current _status _ticks _batch _merged"
).split()
OPERATORS = ("join", "distinct", "span", "sessions", "totals", "process")
Operator = Join | Distinct | Span | Sessions | Totals | Process
OWN = ("matched", "seconds_between")
OF_SESSIONS = (
    "session_start session_end closes_at closed page_views pages_visited length bounce first_page "
    "last_page path session_day"
).split()


class Stream(Declared):
    """Rows that follow the events by one operator, in the table `name`: a `join` of the events with
    themselves or the `distinct` ones, appended as they are known for sure; the `span` from a key's
    first event to its last one, and `sessions`, which are there while they go on; `totals` of
    windows of time, also of a join's pairs; or what a `process` of one's own makes of the events of
    a key.

    The state of an operator holds what it waits for; spans and sessions have none. With
    `max_state_rows` the pipeline stops when the state holds more.
    """

    name: Identifier
    join: Join | None = None
    distinct: Distinct | None = None
    span: Span | None = None
    sessions: Sessions | None = None
    totals: Totals | None = None
    process: Process | None = None
    max_state_rows: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _check(self) -> Stream:
        words = [word for word in OPERATORS if getattr(self, word)]
        if words == ["join", "totals"]:
            self._check_totals_of_pairs()
        elif len(words) != 1:
            raise Misdeclared(
                f"stream {self.name} has one of {', '.join(OPERATORS)}; only totals may stand "
                "behind a join"
            )
        elif self.totals and self.totals.watermark is None:
            raise Misdeclared("totals of events need a watermark", "totals")
        elif self.totals and self.totals.of is not None:
            raise Misdeclared("there is no join of which it could be a side", "totals", "of")
        if (self.sessions or self.span) and self.max_state_rows:
            raise Misdeclared(f"`{words[0]}` has no state, so no limit of it", "max_state_rows")
        return self

    def _check_totals_of_pairs(self) -> None:
        join, totals = self.join, self.totals
        assert join is not None and totals is not None
        for word in ("where", "watermark"):
            if getattr(totals, word) is not None:
                raise Misdeclared(f"{word} is said by the sides of the join", "totals", word)
        if join.kind != "inner":
            raise Misdeclared("totals are of pairs: kind: inner", "join", "kind")
        sides = [side.name for side in join.sides]
        if totals.of not in sides:
            message = f"totals behind a join say by whose time: of: {' or '.join(sides)}"
            raise Misdeclared(message, "totals")
        if totals.emit != "closed":
            raise Misdeclared("behind a join windows come once: emit: closed", "totals")

    @property
    def word(self) -> str:
        """The word of its first operator."""
        return next(word for word in OPERATORS if getattr(self, word))

    @property
    def operator(self) -> Operator:
        """What takes the events in."""
        operator: Operator = getattr(self, self.word)
        return operator

    @property
    def merges(self) -> bool:
        """Whether its rows change, instead of being appended."""
        return bool(self.span or self.sessions or (self.totals and self.totals.merges))

    @property
    def recomputable(self) -> bool:
        """Whether a batch over the events can give its rows again: joins and totals follow from the
        events alone. Sessions and spans lose none that comes late; what `distinct` and `process`
        give depends on the order in which events came."""
        return self.join is not None or self.totals is not None

    def row_time(self, event_time: str) -> str:
        """Return the column of a join's rows, or of totals, that tells their time."""
        return "window_start" if self.totals else event_time

    @property
    def lateness(self) -> timedelta:
        """How much older than the newest event one may be that Spark takes: of two watermarks the
        greater one, as rows go by the lesser time, or by `policy: max` the lesser one."""
        waits = [each.lateness for each in self.inputs.values()]
        return min(waits) if self.join and self.join.policy == "max" else max(waits)

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
        """The operators' words, by which a table knows which rows it has."""
        behind = (
            self.totals.model_dump_json(exclude_defaults=True) if self.join and self.totals else ""
        )
        return self.operator.model_dump_json(exclude_defaults=True) + behind

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
        understood: dict[str, object] = {
            word: stream.operator.checked(types, "streams", place, word)
        }
        if stream.join and stream.totals:
            known = pair_types(stream.join, types)
            understood["totals"] = stream.totals.checked(known, "streams", place, "totals")
        found.append(stream.model_copy(update=understood))
        _refuse_columns(found[-1], views[0], place)
    return tuple(found)


def pair_types(join: Join, types: Mapping[str, str]) -> dict[str, str]:
    """Return the types of the columns of a join's pairs that can be counted by."""
    columns = {name: types[name] for name in join.keys}
    for side in join.sides:
        columns |= {f"{side.name}_{name}": types[name] for name in side.columns}
    return {**columns, "seconds_between": "DOUBLE"}


def _refuse_columns(stream: Stream, view: FeatureView, place: int) -> None:
    """Raise Misdeclared where two columns of the stream's rows would have one name."""
    own = [view.event_time, *RESERVED]
    if stream.join and stream.totals:
        return
    if stream.join:
        sides = stream.join.sides
        own += OWN
        names = [
            *stream.join.keys,
            *(f"{side.name}_{end}" for side in sides for end in ("at", "record_id")),
            *(f"{side.name}_{column}" for side in sides for column in side.columns),
        ]
    elif stream.totals:
        return
    elif stream.process:
        process = stream.process
        types = {name: view.types[name] for name in view.event_schema}
        names = [*process.keys, *process.types_of(types)]
    elif stream.span:
        names = [*stream.span.keys, *stream.span.result_columns]
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
