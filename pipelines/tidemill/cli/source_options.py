"""What the command line says of a source: `--source`, and the options that its kinds declare."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill import SourceOption, SourceWords
from tidemill.sources.registry import check_taken, kind_taking, kinds, options


@dataclass(frozen=True)
class Said:
    """What the command line says of the source: its kind, and words that go with it."""

    kind: str | None = None
    words: Mapping[str, str] = field(default_factory=dict)

    def over(self, declared: SourceWords) -> dict[str, Any]:
        """Return the definition's words that are said otherwise: a source of another kind goes by
        the clock of its kind."""
        if not (self.kind or self.words):
            return {}
        kind = self.kind or kind_taking(self.words, declared.kind)
        check_taken(kind, self.words)
        if kind == declared.kind:
            words = declared.model_dump(exclude_unset=True, by_alias=True)
            return {"source": {**words, **self.words}}
        clock = {"clock": kinds()[kind].clock} if kind in kinds() else {}
        return {"source": {"kind": kind, **self.words}, **clock}


def of_source(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--source` and what each kind of source takes (`SourceOption`) behind its own
    arguments; it gets them as `source`, a `Said`."""
    signature = inspect.signature(command, eval_str=True)
    typed = {
        "source_kind": _SOURCE,
        **{word: _typed(one) for word, one in options().items()},
    }
    keyword = Parameter.POSITIONAL_OR_KEYWORD
    more = [Parameter(name, keyword, default=None, annotation=of) for name, of in typed.items()]
    own = list(signature.parameters.values())
    first = next(n for n, one in enumerate(own) if one.default is not Parameter.empty)
    own[first:first] = more

    @functools.wraps(command)
    def run(*arguments: Any, **said: Any) -> None:
        kind = said.pop("source_kind")
        words = {word: said.pop(word) for word in options()}
        given = {word: _as_word(word, text) for word, text in words.items() if text is not None}
        command(*arguments, **said, source=Said(kind, given))

    parameters = [one for one in own if one.name != "source"]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


_SOURCE = Annotated[
    str | None,
    typer.Option("--source", help=f"{' or '.join(kinds())}.  [default: the pipeline's]"),
]


def _typed(option: SourceOption) -> Any:
    kind = Path if option.is_path else str
    return Annotated[kind | None, typer.Option(option.flag, help=option.help)]


def _as_word(word: str, value: str | Path) -> str:
    return str(value.absolute()) if isinstance(value, Path) else value
