"""Rules over a view's features, as a pipeline's file says them: who is alerted, and until when."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Literal

from pydantic import Field

from tidemill.config.yaml_loader import Declared
from tidemill.features.checks import Misdeclared
from tidemill.features.expressions import row_expression
from tidemill.features.suggestions import did_you_mean
from tidemill.features.types import Duration, Identifier
from tidemill.features.view import FeatureView
from tidemill.features.windows import duration

SCORE, MODEL_VERSION = "score", "model_version"
_OF_MODEL = {"model", "features", "output", "nulls"}
_NUMBERS = {"BIGINT", "INT", "DOUBLE", "FLOAT", "DECIMAL", "BOOLEAN"}


class AlertRule(Declared):
    """A rule that fires for a key when `when` becomes true of its features, and is resolved when
    `until` does, by default when `when` is true no more; or one that fires when the whole pipeline
    had no event for so long (`no_events`), and is resolved by the next.

    Both are SQL over the features and keys of `view`, which a pipeline of one view need not name. A
    key whose alert was resolved fires again after `cooldown` at the earliest, by the events' time
    or the wall's as the pipeline goes by.

    With a `model` both may read `score`: the number that it gives for `features`, and keys, in
    its order. `model` is MLflow's (`models:/NAME@alias`, a folder) or a file of ONNX; `output`
    names one of several outputs, the last one by default. A row with a null among them has
    no score, unless `nulls: pass` gives it to the model.
    """

    name: Identifier
    view: str | None = None
    when: str | None = None
    no_events: Duration | None = None
    until: str | None = None
    cooldown: Duration | None = None
    model: str | None = Field(default=None, min_length=1)
    features: tuple[Identifier, ...] = ()
    output: str | None = None
    nulls: Literal["skip", "pass"] = "skip"

    @property
    def pause(self) -> timedelta:
        """How long a key's alert does not fire again."""
        return duration(self.cooldown) if self.cooldown else timedelta(0)

    @property
    def silence(self) -> timedelta:
        """How long there are no events where a rule of `no_events` fires."""
        assert self.no_events is not None
        return duration(self.no_events)

    @property
    def reads(self) -> set[str]:
        """The features and keys that the rule reads, `score` among them."""
        texts = [text for text in (self.when, self.until) if text is not None]
        return set(self.features).union(*map(row_expression.columns_of, texts))

    @property
    def written(self) -> str:
        """The rule's words over a view, by which it is known whether it has changed."""
        model = set() if self.model else _OF_MODEL
        return self.model_dump_json(exclude={"no_events", *model})


def checked(rules: Iterable[AlertRule], views: tuple[FeatureView, ...]) -> tuple[AlertRule, ...]:
    """Return the rules with their views named and their conditions as they were understood;
    Misdeclared for an unknown view or feature, a rule that is no condition, a name that comes
    twice."""
    found: list[AlertRule] = []
    for place, rule in enumerate(rules):
        if rule.name in {one.name for one in found}:
            raise Misdeclared(f"alert {rule.name} is declared twice", "alerts", place, "name")
        if rule.no_events is not None:
            found.append(_of_pipeline(rule, place))
            continue
        if rule.when is None:
            message = f"alert {rule.name} has no rule: when, or no_events"
            raise Misdeclared(message, "alerts", place)
        view = _view_of(rule, views, place)
        types = {**{key: view.types[key] for key in view.keys}, **_types(view)}
        if _check_model(rule, types, place):
            types[SCORE] = "DOUBLE"
        texts = {
            word: _condition(text, types, place, word)
            for word in ("when", "until")
            if (text := getattr(rule, word)) is not None
        }
        found.append(rule.model_copy(update={"view": view.name, **texts}))
        if rule.model and SCORE not in found[-1].reads:
            message = f"alert {rule.name} has a model, and does not read {SCORE}"
            raise Misdeclared(message, "alerts", place, "when")
    return tuple(found)


def _check_model(rule: AlertRule, types: dict[str, str], place: int) -> bool:
    """Return whether the rule has a model; Misdeclared for what it cannot be given."""
    if rule.model is None:
        for word in ("features", "output"):
            if getattr(rule, word):
                message = f"alert {rule.name} has no model that takes {word}"
                raise Misdeclared(message, "alerts", place, word)
        return False
    for word in (SCORE, MODEL_VERSION):
        if word in types:
            message = f"the view has a column {word}, which is what an alert's model gives"
            raise Misdeclared(message, "alerts", place, "model")
    if not rule.features:
        message = f"alert {rule.name}: features are what its model takes, in its order"
        raise Misdeclared(message, "alerts", place, "model")
    for name in rule.features:
        if name not in types:
            hint = did_you_mean(name, types)
            raise Misdeclared(f"no feature or key {name!r}{hint}", "alerts", place, "features")
        if not _is_input(types[name], rule.model):
            message = f"{name} is {types[name]}, which a model does not take"
            raise Misdeclared(message, "alerts", place, "features")
    return True


def _is_input(type_: str, model: str) -> bool:
    """Return whether a model takes a type: numbers, and of MLflow texts too."""
    plain = type_.upper().partition("(")[0]
    return plain in _NUMBERS or (plain == "STRING" and not model.endswith(".onnx"))


def _of_pipeline(rule: AlertRule, place: int) -> AlertRule:
    """Return a rule of the whole pipeline; Misdeclared with a word for rules of keys."""
    for word in ("view", "when", "until", "cooldown", "model", "features"):
        if getattr(rule, word):
            message = (
                f"alert {rule.name}: no_events is of the whole pipeline, and takes no {word!r}"
            )
            raise Misdeclared(message, "alerts", place, word)
    return rule


def _view_of(rule: AlertRule, views: tuple[FeatureView, ...], place: int) -> FeatureView:
    names = [view.name for view in views]
    if rule.view is None and len(views) > 1:
        message = f"alert {rule.name} names no view: one of {', '.join(names)}"
        raise Misdeclared(message, "alerts", place)
    if rule.view not in (None, *names):
        message = f"unknown view {rule.view!r}{did_you_mean(str(rule.view), names)}"
        raise Misdeclared(message, "alerts", place, "view")
    return views[names.index(rule.view or names[0])]


def _types(view: FeatureView) -> dict[str, str]:
    return {column.name: column.type for column in view.shown}


def _condition(text: str, types: dict[str, str], place: int, word: str) -> str:
    try:
        return row_expression.checked(text, types, condition=True)
    except ValueError as error:
        raise Misdeclared(str(error), "alerts", place, word) from error
