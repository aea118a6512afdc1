"""The streaming queries of a pipeline, as data.

    source ──land──► bronze ──clean──► events + quarantine ──feature──► buckets ──► features
                                 ▲      engine: stateful        └──► arrivals ──state──► features
                                 │ enrich
    changes ──land_changes──► bronze ──dimension──► dimension      for each dimension
    events ──stream──► its rows                                    for each stream
    events ──slices──► the online store                            publish: {slices: true}

Whoever has to know which queries there are reads `QUERIES`: the runner, checkpoints, metrics,
maintenance, `top`, errors. Another query is another entry, and a module that starts it.

A table stands here by its role, the end of its name: `<pipeline>_bronze`, `<view>_buckets`; of a
query that is for a dimension each is the dimension's, `<dimension>_bronze`. The table of a stream
is called as the stream: its role is `rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

SOURCE = "source"
ROWS = "rows"  # the role of the table that a stream writes
OF_VIEW = frozenset({"buckets", "hours", "arrivals", "features"})  # roles that each view has
REBUILD = "run `tidemill rebuild {pipeline} --from bronze`"


@dataclass(frozen=True)
class Query:
    """One streaming query, from a table into others, on a checkpoint of its own.

    `reads` and `writes` are roles of tables; what reads `SOURCE` is fed from outside the lake.
    `checkpoint` is its folder's name behind `<pipeline>_`; with `{view}`, `{dimension}` or
    `{stream}` in it there is a query of the kind for each of them, and `view`, `dimension` or
    `stream` is the one it is for.
    `step` is the module that starts it, imported when it starts: `start(pipeline, query, trigger)`
    returns Spark's query, and `claim(pipeline, query)`, where it has one, takes the checkpoint
    instead of `pipeline.queries.claim`; `watch(pipeline, query, running)`, where it has one, fails
    when the running query may not go on. The commits of the table in the role `ledger` say what its
    batches did; None where another query's ledger does. `trigger` is how often it looks unless a
    pipeline says otherwise; with an `engine` the query is there for that engine alone, with an
    `option` where a pipeline takes that. `lost` says what to do when the checkpoint is lost.
    """

    name: str
    reads: str
    writes: tuple[str, ...]
    checkpoint: str
    step: str
    ledger: str | None
    trigger: str = "30s"
    engine: str | None = None
    lost: str = REBUILD
    option: str | None = None
    view: str | None = None
    dimension: str | None = None
    stream: str | None = None

    @property
    def is_fed(self) -> bool:
        """Whether it reads the source, not a table."""
        return self.reads == SOURCE

    @property
    def per_view(self) -> bool:
        """Whether there is one of the kind for each view."""
        return self.view is not None or "{view}" in self.checkpoint

    @property
    def per_dimension(self) -> bool:
        """Whether there is one of the kind for each dimension."""
        return self.dimension is not None or "{dimension}" in self.checkpoint

    @property
    def per_stream(self) -> bool:
        """Whether there is one of the kind for each stream."""
        return self.stream is not None or "{stream}" in self.checkpoint

    @property
    def told_of(self) -> str | None:
        """The dimension or stream that it is for: its batches are told under that name."""
        return self.dimension or self.stream

    def of_view(self, view: str) -> Query:
        """Return the one of the kind that is for a view."""
        return replace(self, checkpoint=self.checkpoint.format(view=view), view=view)

    def of_dimension(self, dimension: str) -> Query:
        """Return the one of the kind that is for a dimension."""
        checkpoint = self.checkpoint.format(dimension=dimension)
        return replace(self, checkpoint=checkpoint, dimension=dimension)

    def of_stream(self, stream: str) -> Query:
        """Return the one of the kind that is for a stream."""
        return replace(self, checkpoint=self.checkpoint.format(stream=stream), stream=stream)

    def tables(self, roles: Iterable[str], pipeline: str, views: Sequence[str]) -> list[str]:
        """Return the names of tables by their roles: of the query's own view, dimension or stream,
        else of all views."""
        if self.dimension:
            return [f"{self.dimension}_{role}" for role in roles]
        ours = (self.view,) if self.view else views
        return [
            name
            for role in roles
            for name in ([str(self.stream)] if role == ROWS else table_names(role, pipeline, ours))
        ]


def table_names(role: str, pipeline: str, views: Iterable[str]) -> list[str]:
    """Return the names of the tables in a role: one of the pipeline, or one of each view."""
    return [f"{of}_{role}" for of in (views if role in OF_VIEW else (pipeline,))]


STATE = Query(
    "state",
    reads="arrivals",
    writes=("features",),
    checkpoint="state_{view}",
    step="tidemill.pipeline.steps.state_step",
    ledger=None,
    engine="stateful",
)
STREAM = Query(
    "stream",
    reads="events",
    writes=(ROWS,),
    checkpoint="stream_{stream}",
    step="tidemill.pipeline.steps.stream_step",
    ledger=ROWS,
)
QUERIES = (
    Query(
        "land",
        reads=SOURCE,
        writes=("bronze",),
        checkpoint="land",
        step="tidemill.pipeline.steps.land_step",
        ledger="bronze",
        lost="see 'Lost checkpoint of land' in docs/operations.md",
    ),
    Query(
        "land_changes",
        reads=SOURCE,
        writes=("bronze",),
        checkpoint="land_{dimension}",
        step="tidemill.pipeline.steps.land_step",
        ledger="bronze",
        lost="see 'Lost checkpoint of land' in docs/operations.md",
    ),
    Query(
        "dimension",
        reads="bronze",
        writes=("dimension", "quarantine"),
        checkpoint="dimension_{dimension}",
        step="tidemill.pipeline.steps.dimension_step",
        ledger="dimension",
    ),
    Query(
        "clean",
        reads="bronze",
        writes=("events", "quarantine"),
        checkpoint="clean",
        step="tidemill.pipeline.steps.clean_step",
        ledger="events",
    ),
    Query(
        "feature",
        reads="events",
        writes=("buckets",),
        checkpoint="feature",
        step="tidemill.pipeline.steps.feature_step",
        ledger="features",
        trigger="60s",
    ),
    STATE,
    STREAM,
    Query(
        "slices",
        reads="events",
        writes=(),
        checkpoint="slices",
        step="tidemill.pipeline.steps.slices_step",
        ledger=None,
        trigger="1s",
        lost="nothing: the store says what it lacks",
        option="slices",
    ),
)


def of(
    engine: str | None,
    views: Iterable[str],
    dimensions: Iterable[str] = (),
    options: Iterable[str] = (),
    streams: Iterable[str] = (),
) -> list[Query]:
    """Return the queries of a pipeline with an engine, None for any, and options, in the order of
    the flow: one of a kind that is per view for each view, and so for dimensions and streams."""
    used = [query for query in QUERIES if engine is None or query.engine in (None, engine)]
    used = [query for query in used if query.option is None or query.option in options]
    changes = [query.of_dimension(d) for d in dimensions for query in used if query.per_dimension]
    once = [q for q in used if not (q.per_view or q.per_dimension or q.per_stream)]
    behind = [query.of_stream(name) for name in streams for query in used if query.per_stream]
    each = [query.of_view(view) for query in used if query.per_view for view in views]
    # A dimension comes before clean, which looks events up in it, and behind land alone.
    fed = sum(query.is_fed for query in once)
    return [*once[:fed], *changes, *once[fed:], *each, *behind]


def is_query(name: str) -> bool:
    """Return whether a name is that of a query."""
    try:
        by_checkpoint(name)
    except KeyError:
        return False
    return True


def by_checkpoint(checkpoint: str) -> Query:
    """Return the query with a checkpoint, which is also what Spark and the metrics call it.

    KeyError for a checkpoint of none.
    """
    for query in QUERIES:
        if query.checkpoint == checkpoint:
            return query
    for query in QUERIES:
        for subject, made in (
            ("{view}", query.of_view),
            ("{dimension}", query.of_dimension),
            ("{stream}", query.of_stream),
        ):
            head, held, tail = query.checkpoint.partition(subject)
            if held and checkpoint.startswith(head) and checkpoint.endswith(tail):
                return made(checkpoint[len(head) : len(checkpoint) - len(tail)])
    raise KeyError(checkpoint)
