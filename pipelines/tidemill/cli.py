"""The command line: each command parses, calls and prints.

Exit codes: 0 done, 1 a check found something, 2 what was typed or declared cannot be done, 3 it
started and failed, 130 a second Ctrl-C. With --json stdout holds one JSON object, on failure
{"error": ...}.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.errors import SetupError, TidemillError, UsageError
from tidemill.features.definition import PipelineDefinition, declaring, load, shipped
from tidemill.settings import Clock, Place, iso, whole_minute

app = typer.Typer(
    name="tidemill",
    help="Exact rolling-window features in Delta tables, touched only when they change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

PipelineName = Annotated[str, typer.Argument(help="A shipped pipeline's name, or a YAML file.")]
ViewName = Annotated[str, typer.Argument(help="A feature view's name.")]
Declaring = Annotated[
    str | None,
    typer.Option("--pipeline", help="The pipeline that declares it.  [default: a shipped one]"),
]
Root = Annotated[
    Path | None,
    typer.Option("--root", help="The lake's folder.  [default: $TIDEMILL_ROOT, else ./lake]"),
]
Catalog = Annotated[
    str | None, typer.Option("--catalog", help="The lake's catalog, with --schema.")
]
Schema = Annotated[str | None, typer.Option("--schema", help="The lake's schema, with --catalog.")]
Wait = Annotated[str, typer.Option("--wait", help="How long to wait for another writer.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Memory = Annotated[str, typer.Option("--driver-memory", help="Memory of the local Spark.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show logs, and whole errors.")]
ClockName = Annotated[
    str | None, typer.Option("--clock", help="event or wall.  [default: the pipeline's]")
]
Mode = Annotated[
    str | None,
    typer.Option("--mode", help="auto, incremental or recompute.  [default: the pipeline's]"),
]


Engine = Annotated[
    str | None, typer.Option("--engine", help="buckets or stateful.  [default: the pipeline's]")
]


def example(line: str) -> str:
    """Yield the epilog that shows a command in use."""
    return f"[bold]Example:[/bold]  {line}"


@app.command(epilog=example("tidemill demo --minutes 240 --rate 200"))
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
    from tidemill import demo as demonstration

    first = whole_minute(start, where="--start") if start is not None else None
    opening = _opening(Place.resolve(root), "0s", memory, verbose)
    show = _show(as_json)
    summary = demonstration.demonstrate(
        opening, minutes=minutes, rate=rate, start=first, seed=seed, show=show
    )
    _print(as_json, summary, lambda: None)


@app.command(epilog=example("tidemill run engagement --source files --input ./events --once"))
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
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    wait: Wait = "10s",
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Run a pipeline: --once over everything there is, otherwise until Ctrl-C."""
    from tidemill import running
    from tidemill.opening import open_pipeline

    definition = _declared(load(pipeline), source, input_folder, clock, mode, trigger, engine)
    opening = _opening(Place.resolve(root, catalog, schema), wait, memory, verbose)
    show, started, stop = _show(as_json), time.monotonic(), running.Stop()
    show.opening(definition, opening.place)
    with open_pipeline(opening, definition, f"tidemill run {pipeline}", once=once) as opened:
        with stop.on_signals():
            if once:
                rows = running.run_once(opened, stop, show.batches)
            else:
                rows = running.run(opened, stop, show.batches)
            summary = running.summary(opened, rows, time.monotonic() - started)
    _print(as_json, summary, lambda: show.summary(summary))


@app.command(epilog=example("tidemill refresh engagement --as-of 2026-11-21T10:05:00Z"))
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
    from tidemill import refreshing
    from tidemill.opening import open_lake

    definition = _declared(load(pipeline), None, None, clock, mode, None)
    at = whole_minute(as_of, where="--as-of") if as_of is not None else None
    opening = _opening(Place.resolve(root, catalog, schema), wait, memory, verbose, existing=True)
    with open_lake(opening, definition, f"tidemill refresh {pipeline}") as lake:
        results = refreshing.refresh(lake, opening.clock, at)
    _print_each(as_json, results)


@app.command(epilog=example("tidemill reconcile engagement"))
def reconcile(
    pipeline: PipelineName,
    repair: Annotated[bool, typer.Option("--repair", help="Recompute what is different.")] = False,
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    wait: Wait = "10s",
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Compare the gold table with the recompute from the buckets; exit 1 when any key differs."""
    from tidemill import reconcile as reconciling
    from tidemill.opening import open_lake, read_lake

    definition = load(pipeline)
    opening = _opening(Place.resolve(root, catalog, schema), wait, memory, verbose, existing=True)
    if repair:
        with open_lake(opening, definition, f"tidemill reconcile {pipeline}") as lake:
            results = [reconciling.repaired(lake, view) for view in definition.views]
    else:
        lake = read_lake(opening, definition)
        results = [vars(reconciling.reconcile(lake, view)) for view in definition.views]
    _print_each(as_json, results)
    if any(result["different"] for result in results):
        raise typer.Exit(1)


@app.command(epilog=example("tidemill plan mine.yaml"))
def plan(
    pipeline: PipelineName,
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Say how a changed view differs from its tables, and what that needs. Changes nothing."""
    from tidemill import evolution
    from tidemill.opening import open_as_found

    definition = load(pipeline)
    opening = _opening(Place.resolve(root, catalog, schema), "0s", memory, verbose, existing=True)
    spark = open_as_found(opening, definition)
    found = [evolution.change(spark, view) for view in definition.views]
    if as_json:
        _print_each(True, [{**vars(change), "way": change.way(pipeline)} for change in found])
        return
    for change in found:
        _show(False).say(f"{change.view}: {change.why}\n  {change.way(pipeline)}")


@app.command(epilog=example("tidemill rebuild mine.yaml --features amount_sum"))
def rebuild(
    pipeline: PipelineName,
    source: Annotated[
        str | None, typer.Option("--from", help="bronze: make all silver tables again.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Features by name, without windows: amount_sum,good_count.")
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

    --from bronze makes events, quarantine and buckets again; --features, --keys and --since make
    that part of the buckets again from the events. A rebuild that was stopped goes on where it was.
    """
    from tidemill import rebuild as rebuilding

    wanted = _wanted(source, features, keys, since)
    definition = _declared(load(pipeline), None, None, clock, None, None)
    opening = _opening(Place.resolve(root, catalog, schema), wait, memory, verbose, existing=True)
    show = _show(as_json)
    if wanted:
        summary = wanted.rebuild(opening, definition, show.say, show.batches)
    else:
        summary = rebuilding.rebuild(opening, definition, show.batches)
    _print(as_json, summary, lambda: show.summary(summary))


@app.command(epilog=example("tidemill maintain engagement --dry-run"))
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
    from tidemill import maintenance
    from tidemill.opening import open_lake, read_lake

    definition, started = load(pipeline), time.monotonic()
    opening = _opening(Place.resolve(root, catalog, schema), wait, memory, verbose, existing=True)
    show = _show(as_json)
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
    _print(as_json, found, lambda: show.say(f"{len(told)} steps {words}"))


@app.command(epilog=example('tidemill query "SELECT * FROM engagement_current LIMIT 5"'))
def query(
    sql: Annotated[str, typer.Argument(help="One SELECT, WITH, SHOW or DESCRIBE.")],
    pipeline: Annotated[
        str | None, typer.Option(help="Whose views to know.  [default: the shipped ones]")
    ] = None,
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Ask SQL of the lake; tables are named plainly."""
    from tidemill import questions

    question = questions.read_only(sql)
    opening = _opening(Place.resolve(root, catalog, schema), "0s", memory, verbose, existing=True)
    definitions = [load(name) for name in ([pipeline] if pipeline else shipped())]
    answer = questions.ask(opening, definitions, question)
    _print(as_json, answer, lambda: _show(False).table(answer["columns"], answer["rows"]))


@app.command(epilog=example("tidemill sql features --view engagement"))
def sql(
    name: Annotated[str, typer.Argument(help="A statement's name, such as features or changes.")],
    view: Annotated[str, typer.Option(help="The feature view to finish it for.")] = "engagement",
    pipeline: Annotated[
        str | None, typer.Option(help="The pipeline that declares the view.  [default: VIEW]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a finished statement for a SQL editor; values stay named parameters."""
    from tidemill.statements import statement

    text = statement(name, load(pipeline or view).view(view if pipeline else Path(view).stem))
    _print(as_json, {"name": name, "view": view, "sql": text}, lambda: print(text, end=""))


@app.command(epilog=example("tidemill explain engagement profile-1 title-1"))
def explain(
    view: ViewName,
    key: Annotated[list[str], typer.Argument(help="The key's values, in the view's order.")],
    feature: Annotated[
        str | None, typer.Option(help="One feature, such as view_count_1h.  [default: all]")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="Another time, a whole minute, UTC: recomputed, nothing is written."),
    ] = None,
    pipeline: Declaring = None,
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Show why a key's features have their values: windows, buckets, events, the last refresh."""
    from tidemill import explaining, telling
    from tidemill.opening import read_lake

    definition = declaring(view, pipeline)
    wanted = explaining.asked(definition.view(view), key, feature)
    moment = whole_minute(at, where="--at") if at is not None else None
    opening = _opening(Place.resolve(root, catalog, schema), "0s", memory, verbose, existing=True)
    found = explaining.explain(read_lake(opening, definition), wanted, moment)
    _print(as_json, found, lambda: telling.tell_explained(_show(False), found))


@app.command(epilog=example("tidemill describe engagement"))
def describe(
    view: ViewName,
    pipeline: Declaring = None,
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Show a view's features and tables, how fresh gold is, and what the newest ledgers say."""
    from tidemill import describing, telling
    from tidemill.opening import read_lake

    definition = declaring(view, pipeline)
    opening = _opening(Place.resolve(root, catalog, schema), "0s", memory, verbose, existing=True)
    lake = read_lake(opening, definition)
    found = describing.describe(lake, definition.view(view), opening.clock)
    _print(as_json, found, lambda: telling.tell_described(_show(False), found))


@app.command(epilog=example("tidemill schema > tidemill.schema.json"))
def schema(as_json: Json = False) -> None:
    """Print the JSON Schema of a pipeline file, for an editor that completes and checks it."""
    from tidemill.features.schema import pipeline_schema

    found = pipeline_schema()
    _print(as_json, found, lambda: print(json.dumps(found, indent=2, ensure_ascii=False)))


@app.command(epilog=example("tidemill init shop_signals --folder shop"))
def init(
    name: Annotated[str, typer.Argument(help="The pipeline's name, such as shop_signals.")],
    folder: Annotated[Path, typer.Option(help="Where to write.")] = Path(),
    as_json: Json = False,
) -> None:
    """Write a first pipeline, some events and its test; overwrite nothing."""
    from tidemill.beginning import begin

    files = [str(path) for path in begin(name, folder, Clock.from_environment())]
    _print(as_json, {"pipeline": name, "files": files}, lambda: print("\n".join(files)))


@app.command(epilog=example("tidemill doctor --root ./lake"))
def doctor(root: Root = None, as_json: Json = False) -> None:
    """Check Java, packages, jars and folders, and print the fix for each that is wrong."""
    from tidemill.doctor import checks

    found = checks(Place.resolve(root).root or Path())
    listed = [
        {name: getattr(c, name) for name in ("name", "ok", "found", "expected", "fix")}
        for c in found
    ]
    _print(as_json, {"checks": listed}, lambda: _show(False).checks(listed))
    if not all(check.ok for check in found):
        raise typer.Exit(1)


def _wanted(
    source: str | None, features: str | None, keys: list[str] | None, since: str | None
) -> Any:
    """Yield the part to rebuild, None for all of it from bronze."""
    from tidemill.parts import Wanted

    parts = [word for word, said in (("--from", source), ("--features", features)) if said]
    parts += ["--keys, --since"] if keys or since else []
    if len(parts) != 1:
        expected = "--from bronze, --features NAMES, or --keys and --since"
        found = " and ".join(parts) or "nothing"
        raise UsageError(f"a rebuild is of one thing, found {found}", expected=expected)
    if source:
        if source != "bronze":
            raise UsageError(f"cannot rebuild from {source!r}", where="--from", expected="bronze")
        return None
    names = tuple(name.strip() for name in (features or "").split(",") if name.strip())
    at = whole_minute(since, where="--since") if since else None
    return Wanted(names, tuple(_key(text) for text in keys or ()), at)


def _key(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise UsageError(f"{text!r} is no key", where="--keys", expected="name=value,name=value")
    return {name.strip(): value for name, _, value in pairs}


def main() -> None:
    """Run the command line; the one place where errors become exit codes."""
    arguments = sys.argv[1:]
    try:
        code = app(arguments, standalone_mode=False)
    except Exception as error:
        code = _failed(error, arguments)
    except KeyboardInterrupt:
        code = 130
    sys.stdout.flush()
    raise SystemExit(code if isinstance(code, int) else 0)


def _failed(error: Exception, arguments: list[str]) -> int:
    """Print the error, as JSON where asked, and yield the exit code."""
    if isinstance(error, typer.Exit):
        return error.exit_code
    if "--verbose" in arguments:
        traceback.print_exception(error)
    ours = _ours(error)
    if "--json" in arguments:
        print(json.dumps({"error": ours.as_dict()}))
    else:
        print(f"error: {ours}", file=sys.stderr)
    return ours.exit_code


def _ours(error: Exception) -> TidemillError:
    if isinstance(error, TidemillError):
        return error
    if hasattr(error, "format_message"):  # Typer's own: an unknown option, a missing argument
        return UsageError(error.format_message(), where="command line", expected="see --help")
    if isinstance(error, ModuleNotFoundError) and (missing := _missing_spark()):
        return missing
    from tidemill.failures import explained

    return explained(error, "the command")


def _missing_spark() -> SetupError | None:
    """Yield the error that names Spark as missing, None when it is there."""
    from tidemill.session import require_spark

    try:
        require_spark()
    except SetupError as error:
        return error
    return None


def _declared(
    definition: PipelineDefinition,
    source: str | None,
    folder: Path | None,
    clock: str | None,
    mode: str | None,
    trigger: str | None,
    engine: str | None = None,
) -> PipelineDefinition:
    """Yield the definition with what the command line says instead."""
    said: dict[str, Any] = {}
    if source or folder:
        kind = source or ("files" if folder else definition.source.kind)
        if kind == definition.source.kind and not folder:
            said["source"] = definition.source
        else:
            said["source"] = {"kind": kind, **({"input": str(folder.absolute())} if folder else {})}
    if trigger:
        said["triggers"] = dict.fromkeys(("land", "clean", "feature", "state"), trigger)
    words = {"clock": clock, "refresh": mode, "engine": engine}
    said |= {name: word for name, word in words.items() if word}
    return definition.overridden(said)


def _opening(place: Place, wait: str, memory: str, verbose: bool, *, existing: bool = False) -> Any:
    from tidemill.features.windows import duration
    from tidemill.session import require_spark

    require_spark()
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    from tidemill.lake import check_root
    from tidemill.opening import Opening

    seconds = 0.0 if wait in {"0", "0s"} else duration(wait).total_seconds()
    if existing:
        check_root(place)
    return Opening(place, Clock.from_environment(), seconds, memory, verbose)


def _show(as_json: bool) -> Any:
    from tidemill.showing import Show

    return Show(quiet=as_json)


def _print(as_json: bool, found: dict[str, Any], show: Any) -> None:
    if as_json:
        print(json.dumps(found, default=_text, ensure_ascii=False))
    else:
        show()


def _print_each(as_json: bool, results: list[dict[str, Any]]) -> None:
    """Print one view's result as the object itself, several as a list of them."""
    if as_json:
        found: Any = results[0] if len(results) == 1 else {"views": results}
        print(json.dumps(found, default=_text))
        return
    for result in results:
        print("  ".join(f"{name} {_text(value)}" for name, value in result.items()))


def _text(value: Any) -> str:
    return iso(value) if hasattr(value, "tzinfo") else str(value)


if __name__ == "__main__":
    main()
