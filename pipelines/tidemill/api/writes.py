"""What changes an open lake; the functions behind the writing methods of `Lake`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime

from tidemill.api import observed_run
from tidemill.api.holding import Access
from tidemill.api.moments import Moment, moment
from tidemill.api.reads import Facts, of_view
from tidemill.config.publishing import Publishing
from tidemill.config.settings import iso
from tidemill.lake import lock
from tidemill.monitoring import last_error
from tidemill.online import publish as publishing
from tidemill.operations import maintenance
from tidemill.operations import reconcile as reconciling
from tidemill.operations.after_refresh import AfterRefresh
from tidemill.operations.rebuild import from_bronze, part
from tidemill.operations.rebuild.wanted import Wanted, wanted
from tidemill.operations.rebuild.work import Work
from tidemill.operations.recompute import day_by_day, gold_check
from tidemill.operations.replay_range import OffsetRange, replay_range
from tidemill.operations.swap import exchange, other_generation
from tidemill.pipeline import connection, on_demand, publication
from tidemill.pipeline.observer import Tell as OnBatch


def run(
    access: Access,
    on_batch: OnBatch,
    port: int | None,
    host: str,
    *,
    once: bool,
    profile: bool = False,
) -> Facts:
    """Run the pipeline, once or until it is stopped; return the totals."""
    spark, definition = access.holder("run"), access.the_pipeline()
    opening = access.opening
    with last_error.kept(opening.place, definition.pipeline, opening.clock):
        source = connection.checked_source(opening, definition, once=once)
        pipeline = connection.held_pipeline(spark, opening, definition, source)
        return observed_run.run(
            pipeline, on_batch, once=once, metrics_port=port, metrics_host=host, profile=profile
        )


def replay(access: Access, asked: OffsetRange) -> Facts:
    """Bring records of a range of offsets into bronze, each once."""
    spark, definition = access.holder("replay"), access.the_pipeline()
    source = connection.checked_source(access.opening, definition, once=True)
    pipeline = connection.held_pipeline(spark, access.opening, definition, source)
    return replay_range(pipeline.lake, source, asked, access.opening.clock)


def refresh(access: Access, as_of: Moment | None) -> list[Facts]:
    """Bring each view's gold to a time, the clock's by default."""
    time_asked = moment(as_of, "as_of") if as_of is not None else None
    lake = access.writer("refresh")
    refreshed = on_demand.refresh(lake, access.opening.clock, time_asked)
    AfterRefresh(lake, access.opening.clock).follow()
    return refreshed


def reconcile(
    access: Access, view: str, version: int | None, *, source: str, repair: bool
) -> Facts:
    """Return how many keys of gold differ from the recompute; only a repair writes."""
    reconciling.check(source, version, repair)
    lake, declared = of_view(access, view)
    if repair:
        lake = access.writer("reconcile")
    return reconciling.facts(lake, declared, version, source=source, repair=repair)


def rebuild(
    access: Access,
    source: str | None,
    features: Sequence[str],
    views: Sequence[str],
    keys: Sequence[Mapping[str, object]],
    since: Moment | None,
    on_step: Callable[[str], None],
    on_batch: OnBatch,
) -> Facts:
    """Make tables again, all of silver or a part of the buckets; return the totals."""
    time_asked = moment(since, "since") if since is not None else None
    part_asked = wanted(source, features, views, keys, time_asked)
    spark, opening = access.holder("rebuild"), access.opening
    definition = access.the_pipeline()
    if part_asked is None:
        return from_bronze.rebuild_held(spark, opening, definition, on_batch)
    return part.rebuild(Work(opening, definition, part_asked, on_step, on_batch), spark)


def recompute(
    access: Access,
    names: Sequence[str],
    day: date | None,
    *,
    repair: bool,
    on_step: Callable[[str], None],
    on_day: Callable[[Facts], None],
) -> list[Facts]:
    """Recompute days from the events, and compare gold; only a repair corrects it, and holds the
    lake."""
    definition = access.the_pipeline()
    if repair:
        lake = access.writer("recompute")
    else:
        lake = access.reader(definition).within(access.session())
    views = [view for view in definition.views if not names or view.name in names]

    def remake(since: datetime) -> None:
        part_asked = Wanted(since=since)
        work = Work(access.opening, definition, part_asked, on_step, lambda rows: None)
        part.rebuild(work, access.holder("recompute"))

    found = {
        view.name: gold_check.corrected(lake, view, remake)
        if repair
        else gold_check.found(lake, view)
        for view in views
    }
    if repair:
        AfterRefresh(lake, access.opening.clock).follow()
    now, command = access.opening.clock.now(), f"tidemill recompute {definition.pipeline}"
    with lock.hold_apart(lake.place, lock.RECOMPUTE, command, access.opening.wait):
        return day_by_day.recompute(lake, names, day, now, found, on_day)


def rebuild_beside(access: Access, on_batch: OnBatch) -> Facts:
    """Bring the other generation up to its source; return the totals. Holds that one alone."""
    return other_generation.make(access.opening, access.the_pipeline(), on_batch)


def swap(access: Access) -> Facts:
    """Put the other generation in the place of the living one; return what changed in gold."""
    spark, definition = access.holder("swap"), access.the_pipeline()
    swapped = exchange.swap(spark, access.opening, definition)
    lake = connection.held_lake(spark, access.opening, definition)
    AfterRefresh(lake, access.opening.clock).follow()
    return swapped


def publish(
    access: Access,
    view: str | None,
    store: str | None,
    *,
    rebuild: bool,
    on_view: Callable[[Facts], None],
) -> list[Facts]:
    """Bring the online store to gold, each view or one; return what was done. Only reads the
    lake."""
    definition = access.declaring(view) if view else access.the_pipeline()
    views = [definition.view(view)] if view else list(definition.views)
    said = definition.publish or Publishing()
    lake = access.reader(definition).within(access.session())
    address, results = publication.address_of(lake, said, store), []
    for one in views if view else filter(said.of, views):
        done = publishing.publish(lake, one, address, rebuild=rebuild, ttl=said.ttl_of(one))
        facts = {**vars(done), "as_of": done.as_of and iso(done.as_of), "store": address.url}
        on_view(facts)
        results.append(facts)
    return results


def maintain(
    access: Access, *, dry_run: bool, on_step: Callable[[maintenance.Done], None]
) -> list[Facts]:
    """Keep the lake small and quick; return each step, with `dry_run` each that is due."""
    clock = access.opening.clock
    if dry_run:
        steps = maintenance.plan(access.reader(), clock)
        return [{"table": s.table, "action": s.action, "reason": s.reason} for s in steps]
    lake = access.writer("maintain")
    planned = maintenance.plan(lake, clock)
    return [vars(done) for done in maintenance.maintain(lake, planned, on_step)]
