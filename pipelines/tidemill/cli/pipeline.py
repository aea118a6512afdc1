"""Commands that write: demo, run, refresh, rebuild, maintain."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.cli.options import (
    Catalog,
    ClockName,
    Engine,
    Json,
    Memory,
    Mode,
    PipelineName,
    Root,
    Schema,
    Verbose,
    Wait,
    declared,
    example,
    opening_of,
)
from tidemill.cli.output.results import print_each, print_one, showing
from tidemill.config.pipeline_file import load
from tidemill.config.settings import Place, whole_minute
from tidemill.errors import UsageError

commands = typer.Typer()


@commands.command(epilog=example("tidemill demo --minutes 240 --rate 200"))
def demo(
    root: Annotated[Path, typer.Option(help="A new folder for the lake.")] = Path("tidemill-demo"),
    minutes: Annotated[int, typer.Option(min=1, help="Minutes of event time.")] = 1560,
    rate: Annotated[int, typer.Option(min=1, help="Events per minute.")] = 500,
    start: Annotated[
        str | None, typer.Option(help="The first minute.  [default: current hour - minutes]")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed and start give the same events.")] = 7,
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Watch made-up events become features: generator -> bronze -> silver -> gold, in a folder."""
    from tidemill.cli import demo as demonstration

    first = whole_minute(start, where="--start") if start is not None else None
    opening = opening_of(Place.resolve(root), "0s", memory, verbose)
    show = showing(as_json)
    summary = demonstration.demonstrate(
        opening, minutes=minutes, rate=rate, start=first, seed=seed, show=show
    )
    print_one(as_json, summary, lambda: None)


@commands.command(epilog=example("tidemill run engagement --source files --input ./events --once"))
def run(
    pipeline: PipelineName,
    source: Annotated[
        str | None, typer.Option(help="files or generator.  [default: the pipeline's]")
    ] = None,
    input_folder: Annotated[
        Path | None, typer.Option("--input", help="The folder of a files source.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Bring in everything that is there, then end.")
    ] = False,
    clock: ClockName = None,
    mode: Mode = None,
    engine: Engine = None,
    trigger: Annotated[
        str | None, typer.Option(help="How often each query looks, such as 60s.")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Serve metrics to Prometheus there.")
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="The address that --metrics-port listens on.")
    ] = "127.0.0.1",
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    wait: Wait = "10s",
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Run a pipeline: --once over everything there is, otherwise until Ctrl-C."""
    from tidemill.monitoring.prometheus import Exporter
    from tidemill.operations import rebuild as rebuilding
    from tidemill.operations.schedule import MaintenanceSchedule
    from tidemill.pipeline import runner
    from tidemill.pipeline.connection import open_pipeline
    from tidemill.pipeline.observer import Callback, Observer

    definition = declared(load(pipeline), source, input_folder, clock, mode, trigger, engine)
    opening = opening_of(Place.resolve(root, catalog, schema), wait, memory, verbose)
    show, started, stop = showing(as_json), time.monotonic(), runner.Stop()
    exporter = Exporter(definition.pipeline, opening.clock, metrics_port, metrics_host)
    show.opening(definition, opening.place)
    with (
        exporter.serving(),
        open_pipeline(opening, definition, f"tidemill run {pipeline}", once=once) as opened,
    ):
        observers: list[Observer] = [exporter, Callback(show.batches)]
        with stop.on_signals(), exporter.following(opened):
            totals = rebuilding.finished(opened, stop, observers)
            if once:
                runner.run_once(opened, stop, observers, totals)
            else:
                scheduled = MaintenanceSchedule(show.batches)
                runner.run(opened, stop, [*observers, scheduled], totals)
            summary = totals.summary(opened, time.monotonic() - started)
    print_one(as_json, summary, lambda: show.summary(summary))


@commands.command(epilog=example("tidemill refresh engagement --as-of 2026-11-21T10:05:00Z"))
def refresh(
    pipeline: PipelineName,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="A whole minute, UTC.  [default: the clock's]")
    ] = None,
    mode: Mode = None,
    clock: ClockName = None,
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    wait: Wait = "10s",
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Bring the gold table to a point in time, in one commit."""
    from tidemill.pipeline import on_demand
    from tidemill.pipeline.connection import open_lake

    definition = declared(load(pipeline), None, None, clock, mode, None)
    at = whole_minute(as_of, where="--as-of") if as_of is not None else None
    opening = opening_of(Place.resolve(root, catalog, schema), wait, memory, verbose, existing=True)
    with open_lake(opening, definition, f"tidemill refresh {pipeline}") as lake:
        results = on_demand.refresh(lake, opening.clock, at)
    print_each(as_json, results)


@commands.command(epilog=example("tidemill rebuild mine.yaml --features amount_sum"))
def rebuild(
    pipeline: PipelineName,
    source: Annotated[
        str | None, typer.Option("--from", help="bronze: make all silver tables again.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Features by name, without windows: amount_sum,good_count.")
    ] = None,
    views: Annotated[
        str | None, typer.Option(help="Views whose buckets lack events, by name: plays,clicks.")
    ] = None,
    keys: Annotated[
        list[str] | None, typer.Option(help="A key whose buckets to make again: card=c1,shop=s1.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Make the buckets from this time on again, UTC.")
    ] = None,
    clock: ClockName = None,
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    wait: Wait = "10s",
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Make tables again, all or a part, and bring gold to them in one commit.

    --from bronze makes events, quarantine and buckets again; --features, --views, --keys and
    --since make that part of the buckets again from the events. A rebuild that was stopped goes on
    where it was.
    """
    from tidemill.operations import rebuild as rebuilding

    wanted = _wanted(source, features, views, keys, since)
    definition = declared(load(pipeline), None, None, clock, None, None)
    opening = opening_of(Place.resolve(root, catalog, schema), wait, memory, verbose, existing=True)
    show = showing(as_json)
    if wanted:
        summary = wanted.rebuild(opening, definition, show.say, show.batches)
    else:
        summary = rebuilding.rebuild(opening, definition, show.batches)
    print_one(as_json, summary, lambda: show.summary(summary))


@commands.command(epilog=example("tidemill maintain engagement --dry-run"))
def maintain(
    pipeline: PipelineName,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what there is to do, and do nothing.")
    ] = False,
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    wait: Wait = "10s",
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Keep a lake small and quick: hour buckets, expiry, OPTIMIZE, VACUUM. Changes no feature."""
    from tidemill.operations import maintenance
    from tidemill.pipeline.connection import open_lake, read_lake

    definition, started = load(pipeline), time.monotonic()
    opening = opening_of(Place.resolve(root, catalog, schema), wait, memory, verbose, existing=True)
    show = showing(as_json)
    if dry_run:
        steps = maintenance.plan(read_lake(opening, definition), opening.clock)
        told = [{"table": s.table, "action": s.action, "reason": s.reason} for s in steps]
        for step in steps:
            show.say(f"{step.action:<9} {step.table:<24} {step.reason}")
    else:
        with open_lake(opening, definition, f"tidemill maintain {pipeline}") as lake:
            steps = maintenance.plan(lake, opening.clock)
            told = [vars(done) for done in maintenance.maintain(lake, steps, show.done)]
    found = {
        "pipeline": definition.pipeline,
        "dry_run": dry_run,
        "steps": told,
        "seconds": round(time.monotonic() - started, 3),
    }
    words = "to do" if dry_run else "done"
    print_one(as_json, found, lambda: show.say(f"{len(told)} steps {words}"))


def _wanted(
    source: str | None,
    features: str | None,
    views: str | None,
    keys: list[str] | None,
    since: str | None,
) -> Any:
    """Return the part to rebuild, None for all of it from bronze."""
    from tidemill.operations.backfill import Wanted

    words = {"--from": source, "--features": features, "--views": views}
    parts = [word for word, said in words.items() if said]
    parts += ["--keys, --since"] if keys or since else []
    if len(parts) != 1:
        expected = "--from bronze, --features NAMES, --views NAMES, or --keys and --since"
        found = " and ".join(parts) or "nothing"
        raise UsageError(f"a rebuild is of one thing, found {found}", expected=expected)
    if source:
        if source != "bronze":
            raise UsageError(f"cannot rebuild from {source!r}", where="--from", expected="bronze")
        return None
    at = whole_minute(since, where="--since") if since else None
    return Wanted(_names(features), _names(views), tuple(_key(text) for text in keys or ()), at)


def _names(listed: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (listed or "").split(",") if name.strip())


def _key(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise UsageError(f"{text!r} is no key", where="--keys", expected="name=value,name=value")
    return {name.strip(): value for name, _, value in pairs}
