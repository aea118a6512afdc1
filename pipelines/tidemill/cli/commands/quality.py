"""Commands that check: quality, and quarantine with what becomes of refused records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.cli.options import LakeOptions, PipelineName, example, on_lake
from tidemill.cli.output.answer import print_one, showing
from tidemill.cli.output.terminal import print_lines
from tidemill.config.settings import instant
from tidemill.errors import UsageError
from tidemill.query.json_values import text_of

commands = typer.Typer()
quarantine = typer.Typer(
    help="Refused records: list them, show one, send repaired ones through again.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
commands.add_typer(
    quarantine, name="quarantine", epilog=example("tidemill quarantine list engagement")
)
RecordId = Annotated[str, typer.Argument(help="The record's record_id.")]


@commands.command(epilog=example("tidemill quality engagement --docs ./docs-of-today"))
@on_lake(waits=True)
def quality(
    pipeline: PipelineName,
    docs: Annotated[
        Path | None, typer.Option(help="Where to write Data Docs.  [default: <root>/_quality/docs]")
    ] = None,
    *,
    options: LakeOptions,
) -> None:
    """Check events, buckets and gold against the quality file; exit 1 when a check fails."""
    lake = options.open(pipeline=pipeline)
    outcome = lake.check(docs)
    print_one(options.as_json, outcome, lambda: _tell(outcome))
    if not outcome["ok"]:
        raise typer.Exit(1)


def _tell(outcome: dict[str, Any]) -> None:
    """Print the checks that failed, and how many did not."""
    show = showing(False)
    wrong = [check for check in outcome["checks"] if not check["ok"]]
    for check in wrong:
        show.say(("failed", "red"), f"  {check['table']}  {check['check']}: {check['found']}")
        show.say(f"        expected {check['expected']}")
        for one in check["examples"]:
            show.say("        " + ", ".join(f"{name} {value}" for name, value in one.items()))
    good = len(outcome["checks"]) - len(wrong)
    show.say(f"{outcome['pipeline']}: {good} checks passed, {len(wrong)} failed")
    if outcome["docs"]:
        show.say(f"Data Docs: {outcome['docs']}")


@quarantine.command("list", epilog=example("tidemill quarantine list engagement --reason missing"))
@on_lake(waits=False)
def list_(
    pipeline: PipelineName,
    since: Annotated[
        str | None, typer.Option(help="Only records that came since a time, UTC.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option(help="Only this reason: missing:gti, or missing for any field.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the open ones into a file, to repair and replay.")
    ] = None,
    *,
    options: LakeOptions,
) -> None:
    """Say why records were refused: each reason with its records, open and replayed."""
    after = instant(since, where="--since") if since is not None else None
    lake = options.open(pipeline=pipeline)
    facts = lake.quarantine.summary(after, reason)
    if out is not None:
        facts["out"] = str(out)
        facts["written"] = lake.quarantine.export(out, after, reason)
    print_one(options.as_json, facts, lambda: _tell_listed(facts))


@quarantine.command(epilog=example("tidemill quarantine show engagement RECORD_ID"))
@on_lake(waits=False)
def show(
    pipeline: PipelineName,
    record_id: RecordId,
    *,
    options: LakeOptions,
) -> None:
    """Show a refused record: payload, position, reasons, batch."""
    lake = options.open(pipeline=pipeline)
    record = lake.quarantine.record(record_id)
    print_one(options.as_json, record, lambda: _tell_shown(record))


@quarantine.command(
    epilog=example("tidemill quarantine replay engagement --ids ID --set event_type=view")
)
@on_lake(waits=True)
def replay(
    pipeline: PipelineName,
    file: Annotated[
        Path | None, typer.Argument(help="JSON lines, each a record_id and its raw_payload.")
    ] = None,
    ids: Annotated[str | None, typer.Option(help="Instead of a file: record_ids, a,b,c.")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="With --ids: FIELD=VALUE; may be repeated.")
    ] = None,
    *,
    options: LakeOptions,
) -> None:
    """Send repaired records through again, once; exit 1 when one would be refused again."""
    fields = _said(file, ids, setting or [])
    writer = f"quarantine replay {pipeline}"
    with options.open(pipeline=pipeline, writer=writer) as lake:
        outcome = lake.quarantine.replay(file, ids=_ids(ids or ""), fields=fields)
    print_one(options.as_json, outcome, lambda: _tell_replayed(outcome, pipeline))
    if outcome["refused"]:
        raise typer.Exit(1)


def _ids(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _said(file: Path | None, ids: str | None, setting: list[str]) -> dict[str, str]:
    """Return what --set says; refuse a replay of nothing, or of two things."""
    if (file is None) == (ids is None):
        raise UsageError("a replay is of a file or of ids", expected="FILE, or --ids a,b,c")
    if ids is not None and not _ids(ids):
        raise UsageError("names no record", where="--ids", expected="--ids a,b,c")
    if file is not None and setting:
        raise UsageError("--set goes with --ids", expected="the fields in the file")
    pairs = [text.partition("=") for text in setting]
    for text, (name, equals, _) in zip(setting, pairs, strict=True):
        if not (name and equals):
            raise UsageError(f"{text!r} sets nothing", where="--set", expected="FIELD=VALUE")
    return {name: value for name, _, value in pairs}


def _tell_listed(facts: dict[str, Any]) -> None:
    show = showing(False)
    show.say(
        f"{facts['records']:,} refused, {facts['open']:,} open, {facts['replayed']:,} replayed"
    )
    if facts["reasons"]:
        columns = list(facts["reasons"][0])
        show.table(columns, [list(row.values()) for row in facts["reasons"]])
    if "out" in facts:
        show.say(f"{facts['written']:,} open records are in {facts['out']}")


def _tell_shown(record: dict[str, Any]) -> None:
    width = max(map(len, record))
    texts = {n: ", ".join(v) if isinstance(v, list) else text_of(v) for n, v in record.items()}
    print_lines(f"{name:<{width}}  {text}" for name, text in texts.items())


def _tell_replayed(outcome: dict[str, Any], pipeline: str) -> None:
    show = showing(False)
    show.say(
        f"{outcome['landed']} landed, {outcome['already']} landed before, "
        f"{len(outcome['refused'])} would be refused again"
    )
    for row in outcome["refused"]:
        show.say(f"  {row['record_id']}: {', '.join(row['reasons'])}")
    if outcome["landed"]:
        show.say(f"The next `tidemill run {pipeline}` takes them in.")
