"""Data Docs in which every value is text: Great Expectations' pages, what goes in escaped.

    result ──its renderers──► document, a tree of blocks ──escaped──► its templates ──► HTML

Of a document, Great Expectations 1.24 escapes only the parameters of its sentences. The cells of a
table, such as unexpected values and the keys of their rows, go into the page as they are; so do
headings and what the index page's script holds. Styles and scripts of the pages are theirs.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from great_expectations.render.components import RenderedDocumentContent
from great_expectations.render.view.view import DefaultJinjaIndexPageView, DefaultJinjaPageView

from tidemill.lake.visible_text import visible

_PARAMETERS = "params"  # of a sentence: the view escapes the texts of them where it puts them in
_STYLING = "styling"  # of a sentence: its own "params" are the styles of each, no values


class TextPage(DefaultJinjaPageView):
    """A page of a suite or of a validation's results."""

    def render(self, document: RenderedDocumentContent, template: Any = None, **words: Any) -> str:
        """Return the page as HTML."""
        return _rendered(self, document, template, words)


class TextIndexPage(DefaultJinjaIndexPageView):
    """The page that lists the others."""

    def render(self, document: RenderedDocumentContent, template: Any = None, **words: Any) -> str:
        """Return the page as HTML."""
        return _rendered(self, document, template, words)


def site(folder: Path) -> dict[str, Any]:
    """Return the configuration of a site of such pages in a folder."""
    page = {"module_name": __name__, "class_name": TextPage.__name__}
    index = {"module_name": __name__, "class_name": TextIndexPage.__name__}
    backend = {
        "class_name": "TupleFilesystemStoreBackend",
        "base_directory": str(folder.absolute()),
    }
    sections = ("expectations", "validations", "profiling")
    return {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": backend,
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder", "view": index},
        "site_section_builders": {name: {"view": page} for name in sections},
    }


def _rendered(view: Any, document: RenderedDocumentContent, template: Any, words: Any) -> str:
    view._validate_document(document)
    page = view._get_template(template or view._template)
    text: str = page.render(_as_text(document.to_json_dict()), **words)
    return text


def _as_text(part: Any, styles: bool = False) -> Any:
    """Return a document's part with its texts escaped; numbers stay, anything else is its text."""
    if isinstance(part, dict):
        return {
            name: (
                _parameters(one)
                if name == _PARAMETERS and not styles
                else _as_text(one, styles or name == _STYLING)
            )
            for name, one in part.items()
        }
    if isinstance(part, list | tuple):
        return [_as_text(one, styles) for one in part]
    return part if _is_plain(part) else escape(visible(part, keep="\n"))


def _parameters(parameters: Any) -> Any:
    """Return a sentence's parameters as numbers and texts, not yet escaped."""
    if not isinstance(parameters, dict):
        return _as_text(parameters)
    return {name: one if _is_plain(one) else visible(one) for name, one in parameters.items()}


def _is_plain(part: Any) -> bool:
    return part is None or isinstance(part, bool | int | float)
