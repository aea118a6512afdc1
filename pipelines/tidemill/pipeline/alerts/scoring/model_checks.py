"""Models looked at before anything starts: installed, there, with the inputs that a rule gives."""

from __future__ import annotations

from collections.abc import Iterator

from tidemill.config.alert_rule import AlertRule
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.pipeline.alerts.scoring.model_version import ModelVersion, current


def check_models(definition: PipelineDefinition) -> list[tuple[AlertRule, ModelVersion]]:
    """Return each rule with a model, and the version that it means now, after loading it here;
    InputError where that cannot be, SetupError where what it needs is not installed."""
    return list(_checked(definition))


def _checked(definition: PipelineDefinition) -> Iterator[tuple[AlertRule, ModelVersion]]:
    for rule in definition.alerts:
        if rule.model is not None:
            version = current(rule.model)
            # Not at the top: NumPy and pandas are not needed by pipelines without a model.
            from tidemill.pipeline.alerts.scoring.loaded_model import loaded

            loaded(version, rule.features, rule.output)
            yield rule, version
