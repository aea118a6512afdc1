r"""Text that shows what it holds: control characters as escapes, such as `\x1b`.

A value may hold an escape sequence that moves the cursor, a line break that fakes another line, or
a mark that turns the direction of what follows. A terminal and a page print it, they do not obey.
"""

from __future__ import annotations

import re

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# C0, DEL, C1, the direction marks and overrides, line and paragraph separators, lone surrogates,
# the byte order mark, annotation marks and noncharacters.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\ufffe\uffff]"
)


def visible(text: object, *, keep: str = "") -> str:
    r"""Return the value as text of one line, its control characters as `\n`, `\x1b` or `\u202e`.

    `keep` names characters that stay as they are: a line break where the text is of several lines.
    """
    return _HIDDEN.sub(lambda match: _escaped(match[0], keep), str(text))


def visible_json(text: str) -> str:
    r"""Return JSON with the same meaning in which every such character is `\u` and four digits."""
    return _HIDDEN.sub(lambda match: match[0] if match[0] == "\n" else _unicode(match[0]), text)


def _escaped(character: str, keep: str) -> str:
    if character in keep:
        return character
    short = f"\\x{ord(character):02x}" if ord(character) < 0x100 else _unicode(character)
    return _NAMED.get(character, short)


def _unicode(character: str) -> str:
    return f"\\u{ord(character):04x}"
