"""Regular expressions that take time in proportion to the text, whatever the text is.

Java's matcher goes back and tries again: `(a+)+b` takes twice as long for each further `a`, and one
record that a sender chose well would hold a batch for hours. So a pattern is written out, and
refused where one text can be divided in many ways: a repetition in a repetition, repeated
alternatives that begin alike, and two repetitions that can take the same characters with nothing
between them that neither takes. What is refused may be harmless; `[^,]*` in the place of `.*` is
read.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from sqlglot import exp

# Python's own parser of patterns moved in 3.11; nothing else reads one into a tree.
_parser = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

LONGEST = 256
MANY = 8  # a repetition of at most so many is followed turn by turn
WAYS = 100_000  # in which all of these together may divide a text
# The place of the pattern among the arguments.
TAKES_PATTERN: Mapping[str, int] = dict.fromkeys(
    "regexp_like regexp_count regexp_extract regexp_instr regexp_replace split".split(), 1
)

Characters = frozenset[int]
ALL: Characters = frozenset(range(129))  # 128 stands for every character beyond ASCII
_CLASSES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_WORD": r"\w",
}
_JAVA = {r"\\p\{\w+\}": r"\\S", r"\\h": r"\\s", r"\\R": r"\\s"}  # at least what Java's takes


def patterns(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the argument of a node that is a regular expression."""
    if isinstance(node, exp.RegexpLike):
        yield node.expression
    elif isinstance(node, exp.Anonymous):
        place = TAKES_PATTERN.get(node.name.lower())
        if place is not None and len(node.expressions) > place:
            yield node.expressions[place]


def fault(node: exp.Expr) -> str:
    """Return why a pattern is not taken, empty where it is."""
    literal = node.unnest()
    if not (isinstance(literal, exp.Literal) and literal.is_string):
        return "must be written out, as it may take for ever"
    text = literal.name
    if len(text) > LONGEST:
        return f"is longer than {LONGEST} characters"
    for java, python in _JAVA.items():
        text = re.sub(java, python, text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _parser.parse(text)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is not understood: {error}"
    try:
        _Repetitions().follow(tree)
    except _Ambiguous as ambiguity:
        return str(ambiguity)
    return ""


class _Ambiguous(Exception):
    """What makes one text match in many ways."""


class _Repetitions:
    """Follows a pattern from left to right and keeps the characters of the open repetition: of the
    last one, while all that came after it may have been taken by it as well."""

    def __init__(self) -> None:
        """Begin with nothing open."""
        self._open: Characters = frozenset()
        self._ways = 1
        self._items = 0

    def follow(self, items: Any) -> None:
        """Follow parsed items; _Ambiguous says what in them matches in many ways."""
        for code, argument in items:
            self._items += 1
            if self._items > LONGEST * MANY:
                raise _Ambiguous("repeats too much")
            self._item(str(code), argument)

    def _item(self, code: str, argument: Any) -> None:
        if code.endswith("_REPEAT"):
            self._repetition(code, *argument)
        elif code == "SUBPATTERN":
            self.follow(argument[-1])
        elif code == "BRANCH":
            self._branches(argument[1])
        elif code in ("ASSERT", "ASSERT_NOT", "GROUPREF", "GROUPREF_EXISTS"):
            raise _Ambiguous("looks around or back, which may take for ever")
        elif code == "ATOMIC_GROUP":
            self.follow(argument)
            self._open = frozenset()
        elif code != "AT":
            self._open = self._open if _characters(code, argument) & self._open else frozenset()

    def _branches(self, branches: Any) -> None:
        before, after = self._open, frozenset[int]()
        for branch in branches:
            self._open = before
            self.follow(branch)
            after |= self._open
        self._open = after

    def _repetition(self, code: str, least: int, most: Any, inner: Any) -> None:
        if most <= MANY:
            self._ways *= most - least + 1
            if self._ways > WAYS:
                raise _Ambiguous("can divide one text in too many ways")
            before = self._open
            for _ in range(most):
                self.follow(inner)
            self._open |= before if not least else frozenset()
            return
        if _varies(inner):
            raise _Ambiguous("repeats what repeats or has alternatives: (a+)+ may take for ever")
        taken = _any_of(inner)
        if taken & self._open:
            raise _Ambiguous(
                "has two repetitions that can take the same characters: write .*a.* as [^a]*a.*"
            )
        self._open = frozenset() if code == "POSSESSIVE_REPEAT" else taken


def _varies(items: Any) -> bool:
    """Return whether the items match texts of several lengths, or one text in several ways."""
    return any(_item_varies(str(code), argument) for code, argument in items)


def _item_varies(code: str, argument: Any) -> bool:
    if code == "SUBPATTERN":
        return _varies(argument[-1])
    if code.endswith("_REPEAT"):
        least, most, inner = argument
        return bool(least != most) or _varies(inner)
    if code != "BRANCH":
        return code.startswith(("ASSERT", "GROUPREF", "ATOMIC"))
    firsts = [_any_of(branch[:1]) for branch in argument[1]]
    alone = sum(map(len, firsts)) == len(frozenset().union(*firsts))
    return not alone or any(len(branch) == 0 or _varies(branch) for branch in argument[1])


def _any_of(items: Any) -> Characters:
    """Return the characters that any of the items can match."""
    taken: Characters = frozenset()
    for code, argument in items:
        if str(code) == "SUBPATTERN":
            taken |= _any_of(argument[-1])
        elif str(code).endswith("_REPEAT"):
            taken |= _any_of(argument[-1])
        elif str(code) == "BRANCH":
            taken = taken.union(*map(_any_of, argument[1]))
        elif str(code) != "AT":
            taken |= _characters(str(code), argument)
    return taken


def _characters(code: str, argument: Any) -> Characters:
    """Return the characters that one item can match, too many rather than too few."""
    if code == "LITERAL":
        return frozenset({min(argument, 128)})
    if code == "NOT_LITERAL":
        return ALL - ({argument} if argument < 128 else frozenset())
    if code == "ANY":
        return ALL - {10}
    if code != "IN":
        return ALL
    taken: frozenset[int] = frozenset()
    inverted = bool(argument) and str(argument[0][0]) == "NEGATE"
    for kind, of in argument[1:] if inverted else argument:
        taken |= _member(str(kind), of)
    return ALL - (taken - {128}) if inverted else taken


def _member(kind: str, of: Any) -> Characters:
    if kind == "LITERAL":
        return frozenset({min(of, 128)})
    if kind == "RANGE":
        low, high = of
        return frozenset({min(code, 128) for code in range(low, min(high, 128) + 1)}) | (
            frozenset({128}) if high > 127 else frozenset()
        )
    if kind != "CATEGORY":
        return ALL
    name = str(of)
    plain = _CLASSES.get(name.replace("_NOT_", "_").replace("UNI_", ""))
    if plain is None:
        return ALL
    member = re.compile(plain)
    ascii_ = frozenset(code for code in range(128) if member.fullmatch(chr(code)))
    return (ALL - ascii_) if "_NOT_" in name else ascii_ | {128}
