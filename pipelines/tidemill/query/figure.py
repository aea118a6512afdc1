"""A chart as a picture, in a file or a notebook: no script, so that no value can become one.

Altair's own HTML holds the chart's data verbatim in a script, and draws with code that the page
generates and fetches. Here vl-convert draws, offline; a page holds the drawing.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import lru_cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import altair
import vl_convert

from tidemill.query.content_policy import content_security_policy

KEPT = 200  # drawings, of some ten thousand letters each
SCALE = 1.5  # of a PNG's pixels
TEMPLATE = Path(__file__).parent / "chart.html"
_VERSION = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])


class Figure(altair.Chart):
    """A chart that a notebook displays as a picture."""

    def _repr_mimebundle_(self, *args: Any, **kwds: Any) -> dict[str, str]:
        spec = self.to_dict()
        png = b64encode(vl_convert.vegalite_to_png(spec, vl_version=_VERSION, scale=SCALE))
        return {"image/svg+xml": svg(spec), "image/png": png.decode("ascii")}


def svg(spec: dict[str, Any]) -> str:
    """Return the drawing of a Vega-Lite declaration; its texts are escaped. The newest are kept:
    a page that is loaded again has the same."""
    return _drawn(json.dumps(spec))


@lru_cache(maxsize=KEPT)
def _drawn(spec: str) -> str:
    drawing: str = vl_convert.vegalite_to_svg(spec, vl_version=_VERSION)
    return drawing


def html(chart: Figure) -> str:
    """Return a page that holds the drawing, and runs and fetches nothing."""
    template, spec = TEMPLATE.read_text("utf-8"), chart.to_dict()
    return Template(template).substitute(
        policy=content_security_policy(template),
        title=escape(str(spec.get("title") or "Chart")),
        drawing=svg(spec),
    )
