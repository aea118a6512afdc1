"""Commands that write: demo, run, refresh, rebuild, maintain."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.cli.options import (
    ClockName,
    Engine,
    Json,
    LakeOptions,
    Memory,
    Mode,
    PipelineName,
    Verbose,
    declared,
    example,
    on_lake,
    show_logs,
)
from tidemill.cli.output import day_lines, difference_lines, profile_lines
from tidemill.cli.output.answer import print_each, print_one, showing
from tidemill.cli.output.display import Show
from tidemill.cli.source_options import Said, of_source
from tidemill.config.pipeline_file import load
from tidemill.config.settings import whole_day, whole_minute
from tidemill.errors import UsageError
from tidemill.sources.registry import kinds

commands = typer.Typer()
SOURCE = "source"


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
    memory: Memory = None,
    verbose: Verbose = False,
) -> None:
    """Watch synthetic events become features: generator -> bronze -> silver -> gold."""
    from tidemill.cli.commands import demo as demonstration

    first = whole_minute(start, where="--start") if start is not None else None
    if verbose:
        show_logs()
    show = showing(as_json)
    opening = demonstration.opening_of(root, memory, verbose)
    summary = demonstration.demonstrate(
        opening, minutes=minutes, rate=rate, start=first, seed=seed, show=show
    )
    print_one(as_json, summary, lambda: None)


_SOURCES = ", ".join(f"{name} ({kind.help})" for name, kind in kinds().items())


@commands.command(
    epilog=example("tidemill run engagement --source files --input ./events --once")
    + f"\n\n[bold]Sources:[/bold]  {_SOURCES}"
)
@on_lake(waits=True)
@of_source
def run(
    pipeline: PipelineName,
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
    profile: Annotated[
        bool, typer.Option("--profile", help="Say where each batch's time went, and keep it.")
    ] = False,
    *,
    source: Said,
    options: LakeOptions,
) -> None:
    """Run a pipeline: --once over everything there is, otherwise until Ctrl-C."""
    definition = declared(
        load(pipeline), source, clock=clock, mode=mode, trigger=trigger, engine=engine
    )
    lake = options.open(
        pipeline=definition,
        writer=f"run {pipeline}",
        create=True,
    )
    show = showing(options.as_json)
    show.opening(definition, lake.place)
    lake.check_run(once=once, metrics_port=metrics_port, metrics_host=metrics_host)
    with lake:
        work = lake.run_once if once else lake.run
        summary = work(
            show.batches, metrics_port=metrics_port, metrics_host=metrics_host, profile=profile
        )
    print_one(options.as_json, summary, lambda: _show_run(show, summary))


def _show_run(show: Show, summary: dict[str, Any]) -> None:
    show.summary({name: value for name, value in summary.items() if name != "profile"})
    for line in profile_lines.lines(summary.get("profile", ())):
        show.say(line)


@commands.command(epilog=example("tidemill replay plays.yaml --topic plays --from 0 --to 5000"))
@on_lake(waits=True)
@of_source
def replay(
    pipeline: PipelineName,
    topic: Annotated[str, typer.Option(help="The topic to read again.")],
    first: Annotated[int, typer.Option("--from", help="The first offset.")],
    end: Annotated[int, typer.Option("--to", help="The offset behind the last one.")],
    partition: Annotated[
        int | None, typer.Option(help="Of this partition only.  [default: each]")
    ] = None,
    *,
    source: Said,
    options: LakeOptions,
) -> None:
    """Read a range of a topic again: what bronze lacks is landed, what it could not read repaired.

    Each record counts once, however often it is replayed. The next run takes in what was landed.
    """
    definition = declared(load(pipeline), source)
    show = showing(options.as_json)
    with options.open(pipeline=definition, writer=f"replay {pipeline}") as lake:
        summary = lake.replay(topic, first, end, partition)
    print_one(options.as_json, summary, lambda: show.summary(summary))


@commands.command(epilog=example("tidemill refresh engagement --as-of 2026-11-21T10:05:00Z"))
@on_lake(waits=True)
def refresh(
    pipeline: PipelineName,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="A whole minute, UTC.  [default: the clock's]")
    ] = None,
    mode: Mode = None,
    clock: ClockName = None,
    *,
    options: LakeOptions,
) -> None:
    """Bring the gold table to a point in time, in one commit."""
    definition = declared(load(pipeline), clock=clock, mode=mode)
    at = whole_minute(as_of, where="--as-of") if as_of is not None else None
    lake = options.open(
        pipeline=definition,
        writer=f"refresh {pipeline}",
    )
    with lake:
        results = lake.refresh(at)
    print_each(options.as_json, results)


@commands.command(epilog=example("tidemill rebuild mine.yaml --features amount_sum"))
@on_lake(waits=True)
@of_source
def rebuild(
    pipeline: PipelineName,
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="bronze: make all silver tables again; source: make all, beside the living lake.",
        ),
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
    *,
    source: Said,
    options: LakeOptions,
) -> None:
    """Make tables again, all or a part, and bring gold to them in one commit.

    --from source makes a lake of its own beside the living one, which runs on; `tidemill diff`
    compares them, `tidemill swap` takes it. --from bronze makes events, quarantine and buckets
    again; --features, --views, --keys and --since make that part of the buckets again from the
    events. A rebuild that was stopped goes on where it was.
    """
    _check_one_thing(origin, features, views, bool(keys or since))
    show = showing(options.as_json)
    if origin == SOURCE:
        definition = declared(load(pipeline), source, clock=clock)
        made = options.open(pipeline=definition).rebuild_from_source(on_batch=show.batches)
        print_one(options.as_json, made, lambda: show.summary(made))
        return
    if source.kind or source.words:
        raise UsageError("only --from source reads a source", where="--source")
    part: dict[str, Any] = {
        "features": _names(features),
        "views": _names(views),
        "keys": [_key(text) for text in keys or ()],
        "since": whole_minute(since, where="--since") if since else None,
    }
    definition = declared(load(pipeline), clock=clock)
    lake = options.open(
        pipeline=definition,
        writer=f"rebuild {pipeline}",
    )
    with lake:
        summary = lake.rebuild(origin, **part, on_step=show.say, on_batch=show.batches)
    print_one(options.as_json, summary, lambda: show.summary(summary))


@commands.command(epilog=example("tidemill recompute orders --only orders_with_payments"))
@on_lake(waits=True)
def recompute(
    pipeline: PipelineName,
    day: Annotated[
        str | None,
        typer.Option(help="One day, UTC, such as 2026-11-25.  [default: those that are due]"),
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Views and streams, by name, with commas.  [default: all]")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Correct gold where it differs.")
    ] = False,
    *,
    options: LakeOptions,
) -> None:
    """Make the days that are over again from the events, and say what differed and why.

    `<name>_merged` has these days and, for the others, what is live. Exit 1 when gold is not what
    the events say and was not corrected, or rows of a stream differ without a reason.
    """
    show, asked = showing(options.as_json), whole_day(day, where="--day") if day else None
    writer = f"recompute {pipeline}" if repair else None
    with options.open(pipeline=load(pipeline), writer=writer) as lake:
        done = lake.recompute(
            _names(only), day=asked, repair=repair, on_step=show.say, on_day=day_lines.telling(show)
        )
    print_one(options.as_json, {"days": done}, lambda: day_lines.nothing(show, done))
    if any(day_lines.is_wrong(each, repaired=repair) for each in done):
        raise typer.Exit(1)


@commands.command(epilog=example("tidemill diff engagement --examples 3"))
@on_lake(waits=False)
def diff(
    pipeline: PipelineName,
    examples: Annotated[int, typer.Option(min=0, help="Keys that differ, of each view.")] = 10,
    *,
    options: LakeOptions,
) -> None:
    """Compare what `rebuild --from source` made beside the living lake with gold.

    By feature and by key, both at gold's as_of; nothing is written.
    """
    show = showing(options.as_json)
    found = options.open(pipeline=load(pipeline)).diff(examples=examples)
    print_one(options.as_json, {"views": found}, lambda: difference_lines.show(show, found))


@commands.command(epilog=example("tidemill swap engagement"))
@on_lake(waits=True)
def swap(pipeline: PipelineName, *, options: LakeOptions) -> None:
    """Put what `rebuild --from source` made in the place of the living lake, gold in one commit.

    What was living lies beside then; with its own definition the same command takes it back.
    """
    show = showing(options.as_json)
    with options.open(pipeline=load(pipeline), writer=f"swap {pipeline}") as lake:
        done = lake.swap()
    print_one(options.as_json, done, lambda: difference_lines.swapped(show, done))


@commands.command(epilog=example("tidemill maintain engagement --dry-run"))
@on_lake(waits=True)
def maintain(
    pipeline: PipelineName,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what there is to do, and do nothing.")
    ] = False,
    *,
    options: LakeOptions,
) -> None:
    """Keep a lake small and quick: hour buckets, expiry, OPTIMIZE, VACUUM. Changes no feature."""
    writer, started = None if dry_run else f"maintain {pipeline}", time.monotonic()
    show = showing(options.as_json)
    with options.open(pipeline=pipeline, writer=writer) as lake:
        steps = lake.maintain(dry_run=dry_run, on_step=show.done)
    if dry_run:
        for step in steps:
            show.say(f"{step['action']:<9} {step['table']:<24} {step['reason']}")
    summary = {
        "pipeline": lake.pipeline.pipeline,
        "dry_run": dry_run,
        "steps": steps,
        "seconds": round(time.monotonic() - started, 3),
    }
    words = "to do" if dry_run else "done"
    print_one(options.as_json, summary, lambda: show.say(f"{len(steps)} steps {words}"))


def _check_one_thing(
    source: str | None, features: str | None, views: str | None, keys_or_since: bool
) -> None:
    words = {"--from": source, "--features": features, "--views": views}
    parts = [word for word, said in words.items() if said]
    parts += ["--keys, --since"] if keys_or_since else []
    if len(parts) != 1:
        expected = "--from bronze or source, --features NAMES, --views NAMES, or --keys and --since"
        options = " and ".join(parts) or "nothing"
        raise UsageError(f"a rebuild is of one thing, found {options}", expected=expected)
    if source and source not in ("bronze", SOURCE):
        expected = f"bronze or {SOURCE}"
        raise UsageError(f"cannot rebuild from {source!r}", where="--from", expected=expected)


def _names(listed: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (listed or "").split(",") if name.strip())


def _key(text: str) -> dict[str, str]:
    """Return a key's values by name; a part that names none belongs to the value before it."""
    key: dict[str, str] = {}
    name = ""
    for part in text.split(","):
        said, equals, value = part.partition("=")
        if equals:
            name = said.strip()
            key[name] = value
        elif name:
            key[name] += f",{part}"
        else:
            raise UsageError(
                f"{text!r} is no key", where="--keys", expected="name=value,name=value"
            )
    return key
