"""Whether a pipeline's sinks can be sent to: brokers that answer, secrets that are set."""

from __future__ import annotations

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.pipeline.sinks import alert_topic, alert_webhook, gold_topic
from tidemill.sources.kafka.words import KafkaSink


def topics_of(definition: PipelineDefinition) -> dict[str, KafkaSink]:
    """Return the topics that a pipeline sends to, by the words that declare them."""
    alerts = definition.alert_sinks
    found = {
        gold_topic.WHERE: definition.sink and definition.sink.kafka,
        alert_topic.WHERE: alerts and alerts.kafka,
    }
    return {where: words for where, words in found.items() if words}


def check_sinks(definition: PipelineDefinition) -> None:
    """Raise SourceError where no broker of a topic that the definition sends to answers, UsageError
    for a secret that is not set; accept a definition without any. Nothing is posted."""
    for where, words in topics_of(definition).items():
        from tidemill.sources.kafka import reader_options
        from tidemill.sources.kafka.source import check_reachable

        reader_options.writing(words, words.topic)
        check_reachable(words, where)
    if definition.alert_sinks and definition.alert_sinks.webhook:
        alert_webhook.check(definition.alert_sinks.webhook)
