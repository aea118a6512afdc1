"""What Prometheus scrapes from a run, over HTTP, and what the dashboard and the alerts ask for."""

from __future__ import annotations

import json
import re
import socket
import threading
import urllib.error
import urllib.request
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from command_line import call
from lakes import NOW, at
from runs import records_of, write_file
from tidemill.config.settings import Clock
from tidemill.lake.batches import BatchRow
from tidemill.monitoring.prometheus import COUNTERS, GAUGES, LATENESS, STEP, Exporter
from tidemill.online.server.request_metrics import RequestMetrics

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "monitoring" / "grafana.json").read_text())
ALERTS = yaml.safe_load((ROOT / "monitoring" / "alerts.yml").read_text())
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(text: str) -> Samples:
    """The value of each sample by its name and labels, `pipeline` left out."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {n: v for n, v in sample.labels.items() if n != "pipeline"}
            found[sample.name, frozenset(labels.items())] = sample.value
    return found


@dataclass
class Scraper:
    """Scrapes a port, again and again, and keeps what it answered last."""

    port: int
    text: str = ""
    ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Scraper:
        self.thread = threading.Thread(target=self._scrape)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def _scrape(self) -> None:
        while not self.ended.wait(0.05):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
                    self.text = answer.read().decode()
            except (urllib.error.URLError, ConnectionError):
                continue

    def value(self, name: str, **labels: str) -> float:
        return parsed(self.text)[name, frozenset(labels.items())]


@pytest.fixture
def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.stream
def test_a_run_is_scraped(spark: SparkSession, tmp_path: Path, free_port: int) -> None:
    """It is 12:00, so an event of 11:30 is 1,800 s late and one of 10:00 is 7,200 s late."""
    events = [
        ("a1", "p1", "g", "view", at("10:00")),
        ("a2", "p1", "g", "view", at("11:30")),
        ("a2", "p1", "g", "view", at("11:30")),
    ]
    records = records_of(events, ["{}", '{"event_id'])
    write_file(tmp_path / "in", "1.jsonl", records)
    words = ("--input", tmp_path / "in", "--once", "--root", tmp_path / "lake", "--json")
    with Scraper(free_port) as scraped:
        answer = call("run", "engagement", *words, "--metrics-port", free_port)
    assert answer.code == 0, answer
    value = scraped.value
    assert value("tidemill_events_total", query="land", view="") == 5
    assert value("tidemill_events_total", query="feature", view="engagement") == 2
    assert value("tidemill_accepted_events_total") == 2
    assert value("tidemill_duplicate_events_total") == 1
    assert value("tidemill_refused_records_total") == 2
    assert value("tidemill_refusals_total", reason="malformed") == 1
    assert value("tidemill_refusals_total", reason="missing:gti") == 1
    assert value("tidemill_merged_rows_total", view="engagement", action="inserted") == 1
    assert value("tidemill_as_of_timestamp_seconds", view="engagement") == at("11:31").timestamp()
    assert value("tidemill_freshness_seconds", view="engagement") == 29 * 60
    assert value(f"{LATENESS}_bucket", le="300.0") == 0
    assert value(f"{LATENESS}_bucket", le="3600.0") == 1
    assert value(f"{LATENESS}_bucket", le="21600.0") == 2
    assert value(f"{LATENESS}_sum") == 9000
    merge = {"query": "feature", "view": "engagement", "step": "merge"}
    assert value(f"{STEP}_count", **merge) == 1
    assert value("tidemill_query_active", query="feature") in {0, 1}
    assert value("tidemill_trigger_seconds", query="land") > 0
    assert spark.streams.active == []
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{free_port}/metrics")


def test_a_port_that_is_taken_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    write_file(tmp_path / "in", "1.jsonl", ["{}"])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = ("--input", tmp_path / "in", "--once", "--root", tmp_path / "lake", "--json")
        answer = call("run", "engagement", *words, "--metrics-port", port)
    assert (answer.code, answer.error["where"]) == (2, "--metrics-port")
    assert f"cannot listen on 127.0.0.1:{port}" in str(answer.error["message"])
    assert not (tmp_path / "lake").exists()


# -- the dashboard and the alerts ----------------------------------------------------------------


def exported() -> dict[str, set[str]]:
    """The labels of each sample that an exporter yields."""
    exporter = Exporter("engagement", Clock(NOW))
    counts = dict.fromkeys(("events", "accepted", "quarantined", "duplicates"), 1)
    clean = BatchRow("clean", "g", 0, NOW, 1, counts=counts, seconds={"clean": 1.0})
    gold = BatchRow("feature", "g", 0, NOW, 1, "engagement", NOW, merged={"inserted": 1})
    exporter.on_batch([clean, gold])
    found: dict[str, set[str]] = defaultdict(set)
    serving = RequestMetrics()
    serving.answered("/v1/features", 200, 0.001)
    serving.read(0.001)
    serving.keys("engagement", 1, 0)
    serving.follow_age("engagement", lambda: 1.0)
    for family in (*exporter.registry.collect(), *serving.registry.collect()):
        for sample in family.samples:
            found[sample.name] |= set(sample.labels)
    for name, (_, labels) in {**COUNTERS, **GAUGES}.items():
        found[name] |= {"pipeline", *labels}
    return found


def test_what_the_daily_check_found_is_counted() -> None:
    exporter = Exporter("engagement", Clock(NOW))
    for told in ({}, {"drift": 2}, {"events_drift": 3}, {"events_drift": 1}):
        exporter.on_batch(
            [BatchRow("refresh", "g", 1, NOW, 1, "engagement", NOW, json.dumps(told))]
        )
    for against, wrong in (("buckets", 2), ("events", 4)):
        labels = {"pipeline": "engagement", "view": "engagement", "against": against}
        assert exporter.registry.get_sample_value("tidemill_wrong_keys_total", labels) == wrong


def test_a_stream_has_no_features_to_count() -> None:
    exporter = Exporter("engagement", Clock(NOW))
    merged = {"inserted": 3}
    exporter.on_batch([BatchRow("stream", "g", 0, NOW, 1, "visits", merged=merged)])
    exporter.on_batch([BatchRow("refresh", "g", 1, NOW, 1, "engagement", NOW)])
    found = {
        (sample.name, sample.labels.get("view"))
        for family in exporter.registry.collect()
        for sample in family.samples
    }
    for name in ("tidemill_overflowed_values", "tidemill_buckets_total"):
        assert (name, "engagement") in found and (name, "visits") not in found
    assert ("tidemill_merged_rows_total", "visits") in found


def questions() -> list[str]:
    """Every expression of the dashboard, its variables' among them, and of the alerts."""
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    variables = [one.get("definition", "") for one in DASHBOARD["templating"]["list"]]
    alerts = [rule["expr"] for group in ALERTS["groups"] for rule in group["rules"]]
    return [text for text in (*panels, *variables, *alerts) if text]


@pytest.mark.parametrize("question", questions())
def test_what_is_asked_for_is_exported(question: str) -> None:
    found, names = exported(), re.findall(r"\btidemill_[a-z_]+", question)
    assert names
    for name in names:
        assert name in found, name
    asked = re.findall(r"(\w+)\s*=~?", question)
    asked += [n for group in re.findall(r"by \(([^)]*)\)", question) for n in group.split(", ")]
    asked += re.findall(r"label_values\(\w+, (\w+)\)", question)
    assert set(asked) <= set.union(*(found[name] for name in names))


def test_the_legend_names_labels_that_the_question_keeps() -> None:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            kept = {
                n for by in re.findall(r"by \(([^)]*)\)", target["expr"]) for n in by.split(", ")
            }
            assert shown <= kept, panel["title"]


def test_every_metric_is_shown() -> None:
    asked = " ".join(questions())
    assert [name for name in (*COUNTERS, *GAUGES, LATENESS, STEP) if name not in asked] == []
    served = {family.name for family in RequestMetrics().registry.collect()}
    assert [name for name in served if name not in asked] == []


def test_the_dashboard_is_one() -> None:
    assert (DASHBOARD["uid"], DASHBOARD["title"]) == ("tidemill", "Tidemill")
    assert DASHBOARD["schemaVersion"] >= 36
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    panels: list[dict[str, Any]] = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_the_page_of_metrics_names_every_one() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    named = set(re.findall(r"`(tidemill_[a-z_]+)`", page))
    assert {*COUNTERS, *GAUGES, LATENESS, STEP} <= named
    assert named <= {*COUNTERS, *GAUGES, LATENESS, STEP, "tidemill_batches", "tidemill_profiles"}
    for name, (_, labels) in {**COUNTERS, **GAUGES}.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}`"))
        assert set(labels) <= set(re.findall(r"\w+", row.split("|")[2])), row
