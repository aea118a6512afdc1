"""What Kafka's errors mean, in a sentence: Spark hands on its client's texts, pages of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tidemill.errors import SetupError, SourceError, TidemillError


@dataclass(frozen=True)
class Fault:
    """A pattern of Spark's or Kafka's texts, and what to say instead; `{0}` is its first group."""

    pattern: str
    message: str
    expected: str
    error: type[TidemillError] = SourceError


_STATE = re.compile(r" SQLSTATE: \w+")
FAULTS: Sequence[Fault] = (
    Fault(
        r"Failed to find data source: kafka",
        "this Spark has no Kafka source: its jars are not on the class path",
        "`tidemill doctor --warm --source kafka` once, or a session that starts with the jars",
        SetupError,
    ),
    Fault(
        r"Failed to load SSL keystore (\S+)[\s\S]*?Caused by: (?:java\.\S+\.)?(\w+: [^\n]*)",
        "the file of keys or certificates {0} cannot be read: {1}",
        "source.security.truststore and keystore that exist, with their passwords (PKCS12 or JKS)",
    ),
    Fault(
        r"(PKIX path \w+ failed)[^\n]*",
        "the broker's certificate is not trusted: {0}",
        "a source.security.truststore that holds it, or the authority that signed it",
    ),
    Fault(
        r"Received fatal alert: (bad_certificate|certificate_required|certificate_unknown)",
        "the brokers refuse the login: they take a client by its certificate ({0})",
        "a source.security.keystore with a certificate that the brokers trust",
    ),
    Fault(
        r"(SaslAuthenticationException|SslAuthenticationException)[^\n]*?: ([^\n]*)",
        "the brokers refuse the login: {1}",
        "the username and password of source.security as the brokers know them",
    ),
    Fault(
        r"(?:Topic|Group|Cluster)AuthorizationException: ([^\n]*)",
        "the brokers do not allow it: {0}",
        "READ and DESCRIBE on the topics for this user",
    ),
    Fault(
        r"Some data may have been lost[\s\S]*?Reason: ([^\n]*)",
        "the brokers do not have the records that come next: {0}",
        "starting_offsets that exist, and a longer retention; to go on without what is gone, which "
        "is counted nowhere, fail_on_data_loss: false",
    ),
    Fault(
        r"UnknownTopicOrPartitionException[^\n]*",
        "the brokers have no such topic",
        "topics that exist: check their names, and that the brokers are the right ones",
    ),
    Fault(
        r"(TimeoutException: [^\n]*|Failed to create new KafkaAdminClient[^\n]*)",
        "the brokers do not answer in time: {0}",
        "brokers that answer at source.bootstrap_servers, and the protocol they speak there",
    ),
)


def explained(text: str) -> TidemillError | None:
    """Return our error for a text of Spark's that a Kafka source caused; None for another's."""
    if "kafka" not in text.lower():
        return None
    for fault in FAULTS:
        if found := re.search(fault.pattern, text):
            groups = [_STATE.sub("", group).strip() for group in found.groups() if group]
            said = fault.message.format(*(groups or [""]), "")
            return fault.error(said[:400], where="source", expected=fault.expected)
    return None
