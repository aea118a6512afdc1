"""Whether a pipeline's sinks can be sent to: brokers that answer, secrets that are set."""

from __future__ import annotations

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.pipeline.sinks import alert_webhook
from tidemill.sources.kafka import reader_options
from tidemill.sources.kafka.source import check_reachable


def check_sinks(definition: PipelineDefinition) -> None:
    """Raise SourceError where no broker of a topic that the definition sends to answers, UsageError
    for a secret that is not set; accept a definition without any. Nothing is posted."""
    for where, words in definition.topics.items():
        reader_options.writing(words, words.topic)
        check_reachable(words, where)
    if definition.alert_sinks and definition.alert_sinks.webhook:
        alert_webhook.check(definition.alert_sinks.webhook)
