"""Charts of rows, and files of them that need neither a browser nor a network.

    columns, rows ──axes──► figure.Figure ──► .svg .png .html

Questions, reports and notebooks draw with it. Times are shown in UTC. Every text is shown as it is:
an .html file holds the drawing and no script. Altair and vl-convert are the extra `plots`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemill.errors import SetupError, UsageError
from tidemill.lake.visible_text import visible
from tidemill.query.chart_axes import Axes, Rows, axes_of

if TYPE_CHECKING:
    from tidemill.query.figure import Figure

HEIGHT, _LINE = 320, 16
_DAY_OR_TIME = (
    "utcFormat(datum.value, utchours(datum.value) + utcminutes(datum.value) ? '%H:%M' : '%b %d')"
)
_WHOLE = "floor(datum.value) == datum.value ? format(datum.value, ',') : ''"
SUFFIXES = (".svg", ".png", ".html")
FOLDER = "TIDEMILL_PLOTS"  # the environment's name of the folder where `show` puts pictures
_LONG_NAME, _MANY_BARS, _FEW_POINTS = 10, 12, 40


def chart(
    columns: Sequence[str],
    rows: Rows,
    *,
    kind: str | None = None,
    x: str | None = None,
    y: str | Sequence[str] | None = None,
    color: str | None = None,
    title: str = "",
    labels: Mapping[str, str] | None = None,
    width: int = 640,
    height: int | None = None,
) -> Figure:
    """Return the rows as a chart, which a notebook displays as a picture.

    Without more words `x` is the first column and `y` every numeric one besides it; a column of
    names gives the colors where x repeats; times and numbers on x make lines, names make bars, in
    the rows' order. `kind` is one of `axes.KINDS`; in a `heat` map y is a column of names, and
    `color` of numbers. `labels` call a column otherwise, with its unit for example; `value` is the
    axis of several columns. UsageError where nothing can be drawn so.
    """
    require_altair()
    named = {name: name.replace("_", " ") for name in columns} | dict(labels or {})
    named = {name: visible(text) for name, text in named.items()}
    drawn = axes_of(columns, rows, kind, x, [y] if isinstance(y, str) else y, color, named)
    with _checked_once():
        made = _heat(drawn) if drawn.kind == "heat" else _plain(drawn)
        made = made.properties(width=width, height=height or _height(drawn), title=visible(title))
        made = made.configure_view(stroke=None).configure_axis(labelLimit=240, titlePadding=10)
    plot: Figure = made
    return plot


def save(made: Figure, path: str | Path) -> Path:
    """Write the chart to a file, which needs nothing else to be looked at; return its path.

    The suffix says how: .svg, .png or .html. UsageError for another, or where it cannot be written.
    """
    require_altair()
    from tidemill.query import figure

    path = Path(path)
    check_suffix(path)
    try:
        if path.suffix == ".html":
            path.write_text(figure.html(made), encoding="utf-8")
        else:
            made.save(str(path), scale_factor=figure.SCALE if path.suffix == ".png" else 1)
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise UsageError(message, where=str(path), expected="a folder you may write to") from error
    return path


def show(made: Figure, name: str) -> Figure:
    """Return the chart for a notebook to display; a script finds `<name>.png` in the folder that
    TIDEMILL_PLOTS names, if it names one."""
    if folder := os.environ.get(FOLDER):
        Path(folder).mkdir(parents=True, exist_ok=True)
        save(made, Path(folder) / f"{name}.png")
    return made


def check_suffix(path: Path) -> None:
    """Raise UsageError when a chart cannot be written to a file of that name."""
    if path.suffix not in SUFFIXES:
        suffix = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
        raise UsageError(f"{suffix} is no picture's", where=str(path), expected=" ".join(SUFFIXES))


def require_altair() -> None:
    """Raise SetupError without the packages of the extra `plots`."""
    missing = [name for name in ("altair", "vl_convert") if find_spec(name) is None]
    if missing:
        raise SetupError(
            f"{' and '.join(missing)} cannot be imported",
            where="plots",
            expected="pip install 'tidemill[plots]'",
        )


def _checked_once() -> AbstractContextManager[None]:
    """Have Altair check a chart as a whole, when it is drawn, and not each part when it is made:
    half of the time that a chart takes."""
    from altair.utils.schemapi import debug_mode

    checked: AbstractContextManager[None] = debug_mode(False)
    return checked


def _plain(drawn: Axes) -> Any:
    """Return lines, areas, bars or points."""
    import altair as alt

    lying = drawn.kind == "bar" and _is_crowded(drawn)
    x, y = ("y", "x") if lying else ("x", "y")
    axes: dict[str, Any] = {"x": alt.X, "y": alt.Y}
    title = drawn.named.get("value", "value") if drawn.several else drawn.named[drawn.ys[0]]
    encoded: dict[str, Any] = {
        x: _across(axes[x], drawn),
        y: axes[y]("y", type="quantitative", title=title, axis=_steps(drawn)),
    }
    if drawn.several or drawn.color:
        encoded["color"] = _colored(drawn)
    if drawn.several and drawn.kind == "bar":
        offset: Any = alt.YOffset if lying else alt.XOffset
        encoded[f"{x}Offset"] = offset("color", type="nominal", sort=None)
    return _marked(drawn).encode(**encoded)


def _steps(drawn: Axes) -> Any:
    """Return the axis of y: counts have no halves."""
    import altair as alt

    values = (record[y] for record in drawn.records for y in drawn.ys)
    whole = all(isinstance(value, int) for value in values if value is not None)
    return alt.Axis(labelExpr=_WHOLE) if whole else alt.Axis()


def _across(axis: Any, drawn: Axes) -> Any:
    """Return the axis of x: times in UTC, names in the rows' order."""
    import altair as alt

    type_, title = drawn.types[drawn.x], drawn.named[drawn.x]
    if type_ == "temporal":
        return axis("x", type=type_, title=f"{title} (UTC)", scale=alt.Scale(type="utc")).axis(
            labelExpr=_DAY_OR_TIME
        )
    if type_ == "nominal":
        return axis("x", type=type_, title=title, sort=None, axis=alt.Axis(labelAngle=0))
    if drawn.kind == "bar":
        return axis("x", type="ordinal", title=title, axis=alt.Axis(labelAngle=0))
    return axis("x", type=type_, title=title, scale=alt.Scale(zero=False))


def _colored(drawn: Axes) -> Any:
    """Return the colors, with a legend of their names in the rows' order."""
    import altair as alt

    if drawn.several:
        return alt.Color("color", type="nominal", title=None, sort=None)
    name = drawn.color or ""
    numeric = drawn.types[name] == "quantitative"
    if numeric:
        return alt.Color("color", type="quantitative", title=drawn.named[name])
    return alt.Color("color", type="nominal", title=drawn.named[name], sort=None)


def _marked(drawn: Axes) -> Any:
    """Return the chart with its marks: few points on a line are shown one by one."""
    import altair as alt

    from tidemill.query.figure import Figure

    made = Figure(alt.InlineData(values=drawn.points()))
    few = len(drawn.records) <= _FEW_POINTS
    if drawn.kind == "line":
        return made.mark_line(point=few)
    if drawn.kind == "area":
        return made.mark_area(opacity=0.7)
    if drawn.kind == "point":
        return made.mark_point(filled=True, size=60)
    thin = drawn.types[drawn.x] == "temporal"
    return made.mark_bar(size=max(1, 400 // len(drawn.records))) if thin else made.mark_bar()


def _heat(drawn: Axes) -> Any:
    """Return a heat map: names on both axes, a number as the color."""
    import altair as alt

    from tidemill.query.figure import Figure

    sort: Any = None if drawn.types[drawn.x] == "nominal" else "ascending"
    return (
        Figure(alt.InlineData(values=drawn.points()))
        .mark_rect()
        .encode(
            x=alt.X("x", type="ordinal", title=drawn.named[drawn.x], sort=sort).axis(labelAngle=0),
            y=alt.Y("y", type="ordinal", title=drawn.named[drawn.ys[0]], sort=None),
            color=alt.Color("color", type="quantitative", title=drawn.named[drawn.color or ""]),
        )
    )


def _height(drawn: Axes) -> int:
    """Return a height that gives lying bars and a heat map's rows room for their names."""
    named = {"heat": drawn.ys[0], "bar": drawn.x if _is_crowded(drawn) else None}.get(drawn.kind)
    lines = len({record[named] for record in drawn.records}) if named else 0
    return max(HEIGHT, lines * len(drawn.ys) * _LINE)


def _is_crowded(drawn: Axes) -> bool:
    """Return whether the names are too many or too long to stand side by side."""
    if drawn.types[drawn.x] != "nominal":
        return False
    names = {str(record[drawn.x]) for record in drawn.records}
    return len(names) > _MANY_BARS or any(len(name) > _LONG_NAME for name in names)
