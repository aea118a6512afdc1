"""Alerts to an address, one after another: at least once, in the order in which they were found.

    messages ──► POST ──taken──────────► sent.json, behind each
                  │ refused (4xx)──────► a warning, and the next one
                  └ not now (5xx, none)► NotNow: the same one again later

The id of a message is its episode and state, so that what comes twice can be told.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tidemill.config.alert_sinks import Webhook
from tidemill.features.windows import duration
from tidemill.lake.catalog import Lake
from tidemill.lake.commits.failpoints import reach
from tidemill.pipeline.sinks import unsent_alerts, webhook
from tidemill.pipeline.sinks.delivery import Delivered, NotNow
from tidemill.sources.kafka.secrets import is_reference, resolved

log = logging.getLogger(__name__)
WHERE = "alert_sinks.webhook"


@dataclass(frozen=True)
class WebhookDelivery:
    """Posts the alerts of a lake."""

    lake: Lake
    words: Webhook
    sink = "webhook"

    @property
    def every(self) -> float:
        """A second in a folder, whose log is a look at a file; elsewhere it is a query."""
        return 1.0 if self.lake.place.folder else 10.0

    def deliver(self) -> Iterator[Delivered]:
        """Post what is new; NotNow where the address does not take it."""
        url, key = _url(self.words), _key(self.words)
        # An address may be a secret itself: the mark names it by a digest.
        target = hashlib.sha256(url.encode()).hexdigest()[:16]
        new = unsent_alerts.unsent(self.lake, self.sink, target)
        if new is None:
            return
        timeout = duration(self.words.timeout).total_seconds()
        for place, row in enumerate(new.rows(), 1):
            message_id = f"{row['episode']}-{row['state']}"
            reply = webhook.post(url, key, message_id, body(row), timeout)
            if reply.later:
                expected = "an address that answers 2xx; it is tried again"
                raise NotNow(reply.text, where=WHERE, expected=expected, wait=reply.wait)
            if not reply.taken:
                log.warning("%s: alert %s is refused: %s", WHERE, message_id, reply.text)
            reach("alerts.posted")
            new.mark(place)
            yield Delivered(sent=int(reply.taken), refused=int(not reply.taken))
        new.mark_all()


def check(words: Webhook) -> None:
    """Raise UsageError for an address or a secret that is not set; post nothing."""
    _url(words)
    _key(words)


def _url(words: Webhook) -> str:
    return resolved(words.url, f"{WHERE}.url") if is_reference(words.url) else words.url


def _key(words: Webhook) -> bytes | None:
    if words.secret is None:
        return None
    where = f"{WHERE}.secret"
    return webhook.key_of(resolved(words.secret, where), where)


def body(row: Any) -> bytes:
    """Return what is posted of a message: its type, its time, and the alert."""
    said = json.loads(row["value"])
    whole = {"type": f"alert.{row['state']}", "timestamp": said["at"], "data": said}
    return json.dumps(whole, separators=(",", ":")).encode()
