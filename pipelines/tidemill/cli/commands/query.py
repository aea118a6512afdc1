"""The command that asks SQL of a lake: query."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tidemill.cli.options import LakeOptions, example, on_lake
from tidemill.cli.output.answer import showing
from tidemill.cli.output.terminal import print_lines, print_text
from tidemill.query.json_values import json_of

commands = typer.Typer()


@commands.command(epilog=example('tidemill query "SELECT * FROM engagement_current LIMIT 5"'))
@on_lake(waits=False, reads=True)
def query(
    sql: Annotated[
        str | None, typer.Argument(help="One SELECT, WITH, SHOW or DESCRIBE.  [default: --file]")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", help="A file of SQL, or a question of sql/adhoc such as trending."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="table, csv, json or plot.  [default: by --output, table]"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", help="The file to write; a plot's is .svg, .png or .html."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="plot: line, area, bar, point or heat.  [default: by what x holds]"),
    ] = None,
    x: Annotated[
        str | None, typer.Option("--x", help="plot: a column.  [default: the first]")
    ] = None,
    y: Annotated[
        list[str] | None,
        typer.Option("--y", help="plot: a column of numbers, or several.  [default: all]"),
    ] = None,
    color: Annotated[
        str | None, typer.Option("--color", help="plot: the column that gives the colors.")
    ] = None,
    pipeline: Annotated[
        str | None, typer.Option(help="Whose views to know.  [default: the shipped ones]")
    ] = None,
    *,
    options: LakeOptions,
) -> None:
    """Ask SQL of the lake; tables are named plainly. Answer with a table, CSV, JSON or a plot."""
    from tidemill.query.export import Form, as_csv, drawn, write
    from tidemill.query.questions import asked

    answer_form = Form.wished(form, options.as_json, output, kind, x, y or (), color)
    text = asked(sql, file)  # a statement that writes is refused before anything is opened
    lake = options.open(pipeline=pipeline)
    answer = lake.answer(text)
    columns, rows = answer["columns"], answer["rows"]
    if answer_form.format == "table":
        showing(False).table(columns, rows)
        return
    if answer_form.format == "plot":
        title = Path(file).stem.replace("_", " ") if file else ""
        print_lines([f"wrote {drawn(answer_form, answer, title)}"])
        return
    if answer_form.format == "csv":
        text = as_csv(columns, rows)
    else:
        text = json_of(answer) + "\n"
    if answer_form.output:
        print_lines([f"wrote {write(text, answer_form.output)}"])
    elif sys.stdout.isatty():
        print_text(text.replace("\r\n", "\n"))
    else:
        print(text, end="")
