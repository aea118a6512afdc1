"""The pages of `docs/aggregates`, one per shipped aggregate, written from its declaration.

python -m tidemill.features.documentation docs/aggregates
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tidemill.features import builders
from tidemill.features.aggregates import SHIPPED, Aggregate, Parameter
from tidemill.features.columns import Column, Partial
from tidemill.features.feature import RATIO, Feature, aggregate
from tidemill.features.view import FeatureView

INDEX = "README.md"
# An event of the examples: what a card bought.
COLUMNS = {"card": "string", "shop": "string", "amount": "decimal(10, 2)", "approved": "boolean"}
EVENT_TIME = "bought_at"
BY_KIND = {"any": "shop", "number": "amount", "boolean": "approved", "exact": "shop"}
GIVEN = {"k": 5, "capacity": 1000}  # what the examples give where a number has no default
KINDS = {
    "any": "a column of any type",
    "number": "a bigint, decimal or double",
    "boolean": "a boolean",
    "exact": "a column of any type but double",
}
_INTRODUCTION = (
    "What a feature can be. Each page shows the aggregate in YAML and in Python, and says what it",
    "makes of nulls and of an empty window. Beside any of them a feature takes `where` (a SQL",
    "condition), `by` (one column of gold for each value), `offset`, `name`, and `empty` where the",
    "empty value is null. `over` takes lengths of time, [periods](../concepts.md) such as since",
    "midnight, and `lifetime`. A package can bring [its own](../own-aggregate.md).",
)
_ADDS_UP = (
    "What adds up is refreshed from the buckets that entered or left a window; of the others only",
    "the keys are computed again that such a bucket belongs to.",
)
RATIO_SUMMARY = (
    "A feature divided by another of the same view, over each window; both are named without it."
)
_OR_ANOTHER = "null; `empty:` in YAML, `.empty(...)` in Python name another value"
_OF_RATIO = (
    "| takes | | default |",
    "|---|---|---|",
    "| `of` | a feature that is a number | |",
    "| `to` | a feature that is a number | |",
    "",
    "- **Type**: `DOUBLE`",
    "- **Nulls**: null where the divisor is null or 0",
    f"- **Over an empty window**: {_OR_ANOTHER}",
    "- **Accuracy**: that of the two features, divided as doubles",
    "- **A bucket keeps**: what the two features keep, and no more",
    "- **A refresh**: as of the two features",
    "- **In state** (`engine: stateful`): no; take `engine: buckets`",
)


def pages() -> dict[str, str]:
    """Return the text of every page by its file's name, the index included."""
    texts = {f"{name}.md": _page(one) for name, one in sorted(SHIPPED.items())}
    texts[f"{RATIO}.md"] = _ratio_page()
    return {INDEX: _index(), **texts}


def write(folder: Path) -> list[Path]:
    """Write the pages into a folder, and remove those of aggregates that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = pages()
    for path in folder.glob("*.md"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def example(one: Aggregate) -> Feature:
    """Return a feature that shows the aggregate in use."""
    columns = {role: BY_KIND[kind] for role, kind in one.inputs.items()}
    if len(columns) > 1:  # the second column orders the first
        columns[list(columns)[-1]] = BY_KIND["number"]
    numbers = {name: GIVEN.get(name, p.low) for name, p in _asked(one.parameters)}
    return aggregate(one.name, **columns, **numbers).over("1h", "1d")


def _asked(parameters: Mapping[str, Parameter]) -> Iterator[tuple[str, Parameter]]:
    return ((name, p) for name, p in parameters.items() if not _has_default(p))


def _has_default(parameter: Parameter) -> bool:
    return isinstance(parameter.default, int | float | tuple | None)


def _column(feature: Feature) -> Column:
    view = FeatureView(
        name="cards",
        keys=("card",),
        event_time=EVENT_TIME,
        event_schema=COLUMNS,
        features=(feature,),
    )
    return view.shown[0]


def _page(one: Aggregate) -> str:
    feature = example(one)
    column = _column(feature)
    lines = [
        f"# {one.name}",
        "",
        one.summary,
        "",
        *_examples([feature], _sentence(one, feature)),
        *_takes(one),
        f"- **Type**: `{column.type}`{_more_types(one)}",
        f"- **Nulls**: {one.nulls}",
        f"- **Over an empty window**: {_empty(one)}",
        f"- **Accuracy**: {one.accuracy}; at the edges of a window one bucket",
        f"- **A bucket keeps**: {_kept(column)}",
        f"- **A refresh**: {_refresh(one)}",
        f"- **In state** (`engine: stateful`): {_in_state(one)}",
    ]
    return _text(lines)


def _examples(features: Sequence[Feature], sentence: str) -> list[str]:
    words = [feature.words() for feature in features]
    said = yaml.safe_dump(words, default_flow_style=None, sort_keys=False, width=100)
    indented = textwrap.indent(said.rstrip(), "  ").splitlines()
    verb = sentence.partition("(")[0]
    return [
        *("```yaml", "features:", *indented, "```", ""),
        *("```python", f"from tidemill import {verb}", "", f"feature = {sentence}", "```", ""),
    ]


def _sentence(one: Aggregate, feature: Feature) -> str:
    """Return the feature as Python says it: columns by place, numbers by name."""
    verb = next(verb for verb in (one.name, f"{one.name}_") if hasattr(builders, verb))
    columns = [f'"{column}"' for column in feature.inputs.values()]
    numbers = [f"{name}={value!r}" for name, value in feature.parameters.items()]
    windows = ", ".join(f'"{window.text}"' for window in feature.windows)
    return f"{verb}({', '.join([*columns, *numbers])}).over({windows})"


def _takes(one: Aggregate) -> list[str]:
    columns = [f"| `{role}` | {KINDS.get(kind, kind)} | |" for role, kind in one.inputs.items()]
    numbers = [
        f"| `{name}` | {_several(p)}{p.words} | {_default(p)} |"
        for name, p in one.parameters.items()
    ]
    rows = [*columns, *numbers]
    return ["| takes | | default |", "|---|---|---|", *rows, ""] if rows else []


def _several(parameter: Parameter) -> str:
    return "a list, each " if parameter.many else ""


def _default(parameter: Parameter) -> str:
    if not _has_default(parameter):
        return "must be given"
    if parameter.default is None:
        return "must be given for a double, and only there"
    return f"`{list(parameter.default) if parameter.many else parameter.default}`"


def _more_types(one: Aggregate) -> str:
    if "{exact}" in one.type:
        return (
            " here; BIGINT of a bigint, else a decimal of 38 digits with the same after the point"
        )
    return " here, after the column's own" if "{of_type}" in one.type else ""


def _empty(one: Aggregate) -> str:
    if one.empty == "NULL":
        return _OR_ANOTHER
    if one.type.startswith("ARRAY"):
        return "an empty list"
    return f"`{one.empty.lower()}`" if len(one.empty) < 6 else "one that holds nothing"


def _kept(column: Column) -> str:
    return "; ".join(_of_partial(term.partial) for term in column.terms)


def _of_partial(partial: Partial) -> str:
    kept = f"`{partial.name}` (`{partial.type}`)"
    if not partial.part.witness:
        return kept
    return f"{kept}, which tells whether the events behind the sketch are the same"


def _refresh(one: Aggregate) -> str:
    if one.invertible:
        return "adds what entered a window and subtracts what left it: the work follows the change"
    return "computes the keys again of which a bucket entered or left a window, and no other"


def _in_state(one: Aggregate) -> str:
    return "yes" if one.fold and len(one.parts) == 1 else "no; take `engine: buckets`"


def _ratio_page() -> str:
    features = (
        aggregate("count").where("approved").named("good").over("1h"),
        aggregate("count").over("1h"),
        aggregate(RATIO, of="good_count", to="count").named("approval").over("1h"),
    )
    sentence = 'ratio("good_count", "count").named("approval").over("1h")'
    return _text([f"# {RATIO}", "", RATIO_SUMMARY, "", *_examples(features, sentence), *_OF_RATIO])


def _index() -> str:
    rows = [
        f"| [{name}]({name}.md) | {one.summary} | {one.accuracy.partition(';')[0]} "
        f"| {'yes' if one.invertible else 'no'} |"
        for name, one in sorted(SHIPPED.items())
    ]
    rows.append(f"| [{RATIO}]({RATIO}.md) | {RATIO_SUMMARY} | as its features | as its features |")
    columns = ", ".join(f"`{name}` ({type_})" for name, type_ in COLUMNS.items())
    lines = [
        "# Aggregates",
        "",
        *_INTRODUCTION,
        "",
        f"The examples count what a card bought: {columns}, by `{EVENT_TIME}`.",
        "",
        "| aggregate | what it is | accuracy | adds up |",
        "|---|---|---|---|",
        *rows,
        "",
        *_ADDS_UP,
    ]
    return _text(lines)


def _text(lines: list[str]) -> str:
    written = (
        "<!-- Written by python -m tidemill.features.documentation; change the declaration. -->"
    )
    return "\n".join([written, "", *lines]) + "\n"


def main(arguments: list[str]) -> Any:
    """Write the pages into the folder that is named."""
    if len(arguments) != 1:
        return "usage: python -m tidemill.features.documentation DIR"
    for path in write(Path(arguments[0])):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
