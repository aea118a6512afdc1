"""The Databricks bundle, offline: the check finds what is planted, and nothing in what is shipped.

Nothing here talks to a workspace. What the jobs do is shown by running each task's command line, as
it is written, on a lake of this machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.main import get_command

import deltalog
from command_line import Answer, call
from lakes import Event, at
from runs import records_of, write_file
from tidemill.cli import app
from tidemill.cli.commands.databricks import refused
from tidemill.config.settings import Place
from tidemill.databricks import bundle as bundles
from tidemill.databricks.bundle import cron, sql, tasks, writers
from tidemill.databricks.bundle.project import items
from tidemill.databricks.bundle.references import Target
from tidemill.errors import SetupError

pytestmark = pytest.mark.bundle

ROOT = Path(__file__).parents[2]
FILES = ("databricks.yml", "resources", "pyproject.toml", "conf", ".dbx")
BUNDLE = bundles.read(ROOT)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The bundle's files in a folder of this test's own."""
    for name in FILES:
        source = ROOT / name
        copy: Any = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / name)
    return tmp_path


def found_in(folder: Path) -> list[bundles.Finding]:
    return bundles.check(bundles.read(folder), partial(refused, get_command(app)))


# -- the shipped bundle --------------------------------------------------------------------------


def test_nothing_is_wrong_in_the_bundle() -> None:
    assert list(map(str, found_in(ROOT))) == []


def test_the_command_says_so() -> None:
    answer = call("bundle", "check", "--folder", ROOT, "--no-sql", "--json")
    assert (answer.code, answer.json["findings"]) == (0, [])
    assert answer.json["targets"] == ["dev", "staging", "prod"]
    assert call("bundle", "check", "--folder", ROOT, "--no-sql").out.startswith("10 files")


def test_one_resource_in_a_file() -> None:
    for document in BUNDLE.included:
        resources = [r for r in BUNDLE.resources if r.document is document]
        assert len(resources) == 1, document.file


@pytest.mark.parametrize(
    ("target", "runs"),
    [("dev", "features_scheduled"), ("staging", "features_scheduled"), ("prod", "features_stream")],
)
def test_one_job_writes_in_each_target(target: str, runs: str) -> None:
    statuses = {}
    for job in BUNDLE.of("jobs"):
        value = Target(BUNDLE, target).resolved(job.value)
        start = value.get("continuous") or value["schedule"]
        if any(map(writers.writes, tasks.of(job))):
            statuses[job.key] = start["pause_status"]
    assert [key for key, status in statuses.items() if status == "UNPAUSED"] == [runs]
    assert len(statuses) == 2


# -- planted mistakes ----------------------------------------------------------------------------

MAIN = "databricks.yml"
STREAM = "resources/features_stream.job.yml"
SCHEDULED = "resources/features_scheduled.job.yml"
AUDIT = "resources/features_audit.job.yml"
ALERT = "resources/freshness.alert.yml"
BOARD = "resources/features.dashboard.yml"


@dataclass(frozen=True)
class Mistake:
    """A text put in place of another, and what is to be found in the line that holds `line`."""

    file: str
    old: str
    new: str
    told: str
    line: str | None = None
    where: str | None = None

    def plant(self, folder: Path) -> tuple[str, int]:
        """Put it into the file; return the file and the line where it is to be found."""
        path = folder / self.file
        text = path.read_text(encoding="utf-8")
        assert self.old in text, self.old
        path.write_text(text.replace(self.old, self.new, 1), encoding="utf-8")
        where = self.where or self.file
        lines = (folder / where).read_text(encoding="utf-8").splitlines()
        wanted = self.line or self.new.strip().splitlines()[0]
        return where, next(
            number
            for number, line in enumerate(lines, 1)
            if line.strip().startswith(wanted) or (not self.line and wanted in line)
        )


LAKE = "resources/lake.schema.yml"
ROOT_PATH = "/Workspace/Users/${workspace.current_user.userName}/.bundle"
MISTAKES = {
    "a folder that all may write to": Mistake(
        MAIN,
        f"root_path: {ROOT_PATH}",
        "root_path: /Workspace/Shared/.bundle",
        "every workspace user may write to /Workspace/Shared/.bundle/tidemill/staging",
    ),
    "a shared folder by another name": Mistake(
        MAIN,
        f"root_path: {ROOT_PATH}",
        "state_path: /Workspace/Users/../shared/${bundle.name}",
        "every workspace user may write to",
    ),
    "a privilege that holds others": Mistake(
        LAKE, "- MODIFY", "- ALL_PRIVILEGES", "ALL_PRIVILEGES is more than a task or a reader needs"
    ),
    "a privilege to grant": Mistake(
        LAKE, "- CREATE_TABLE", "- MANAGE", "MANAGE is more than a task or a reader needs"
    ),
    "a grant to everybody": Mistake(
        LAKE,
        "principal: ${var.readers}",
        "principal: account users",
        "a grant to everybody (account users) in target dev",
    ),
    "a permission for everybody": Mistake(
        MAIN, "group_name: ${var.readers}", "group_name: users", "CAN_VIEW for everybody (users)"
    ),
    "a group that may change the jobs": Mistake(
        MAIN,
        "level: CAN_RUN",
        "level:  CAN_MANAGE",
        "its members may change what runs as another principal",
    ),
    "unknown field": Mistake(
        STREAM, "max_concurrent_runs", "max_concurent_runs", "did you mean 'max_concurrent_runs'?"
    ),
    "unknown field of the main file": Mistake(
        MAIN, "include:", "includes:", "unknown field 'includes'; did you mean 'include'?"
    ),
    "bad enum": Mistake(
        STREAM,
        "task_retry_mode: ON_FAILURE",
        "task_retry_mode: ALWAYS",
        "'task_retry_mode' cannot be 'ALWAYS' (expected: NEVER, ON_FAILURE)",
    ),
    "wrong type in a complex variable": Mistake(
        MAIN, "num_workers: 1", "num_workers: one", "'num_workers' cannot be 'one'"
    ),
    "missing field": Mistake(
        ALERT,
        "        comparison_operator: GREATER_THAN\n",
        "",
        "'evaluation' has no 'comparison_operator'",
        line="evaluation:",
    ),
    "unknown kind of resource": Mistake(ALERT, "  alerts:", "  alert:", "did you mean 'alerts'?"),
    "a key of two resources": Mistake(
        BOARD, "    features:\n", "    freshness:\n", "is called 'freshness' already", where=ALERT
    ),
    "a reference in a reference": Mistake(
        STREAM, "${var.trigger}", "${var.${var.mode}}", "variable is not declared"
    ),
    "unknown variable": Mistake(
        STREAM, "${var.trigger}", "${var.triger}", "not declared; did you mean 'trigger'?"
    ),
    "undeclared variable of a target": Mistake(
        MAIN, "      mode: stream\n", "      mod: stream\n", "variable 'mod' is not declared"
    ),
    "unused variable": Mistake(
        MAIN,
        "  trigger:\n",
        "  triggers:\n    description: Not used.\n  trigger:\n",
        "variable 'triggers' is not used",
    ),
    "unknown resource": Mistake(
        "resources/landing.volume.yml",
        "${resources.schemas.lake.name}",
        "${resources.schemas.lak.name}",
        "did you mean 'schemas.lake'?",
    ),
    "undeclared job cluster": Mistake(
        STREAM,
        "          job_cluster_key: writer\n          python",
        "          job_cluster_key: writr\n          python",
        "job_clusters has no 'writr'; did you mean 'writer'?",
    ),
    "undeclared environment": Mistake(
        AUDIT,
        "          environment_key: reader\n",
        "          environment_key: reading\n",
        "environments has no 'reading'",
    ),
    "missing file": Mistake(
        BOARD,
        "file_path: dashboards/features.lvdash.json",
        "file_path: dashboards/feature.lvdash.json",
        "there is no file resources/dashboards/feature.lvdash.json",
    ),
    "an include that matches nothing": Mistake(
        MAIN, "  - resources/*.yml", "  - resource/*.yml", "no file matches 'resource/*.yml'"
    ),
    "a wheel that nothing builds": Mistake(
        STREAM, "- whl: ../dist/*.whl", "- whl: ./dist/*.whl", "no artifact is built as"
    ),
    "wrong package": Mistake(
        STREAM, "package_name: tidemill", "package_name: tidemil", "is not called 'tidemil'"
    ),
    "wrong entry point": Mistake(
        STREAM,
        "entry_point: tidemill",
        "entry_point: tidemil",
        "no entry point 'tidemil'; did you mean 'tidemill'?",
    ),
    "unknown option": Mistake(
        SCHEDULED, "- --once", "- --onec", "the command line refuses it: No such option: --onec"
    ),
    "unknown command": Mistake(
        SCHEDULED, "              - maintain\n", "              - maintian\n", "'maintian'"
    ),
    "unknown task dependency": Mistake(
        SCHEDULED,
        "- task_key: quality\n          job",
        "- task_key: qualiti\n          job",
        "no task is called 'qualiti'; did you mean 'quality'?",
    ),
    "cycle": Mistake(
        SCHEDULED,
        "- task_key: quality\n          job",
        "- task_key: report\n          job",
        "tasks wait for each other: ",
        line="- task_key: report",
    ),
    "two writers": Mistake(
        MAIN,
        "      scheduled_status: PAUSED\n",
        "      scheduled_status: UNPAUSED\n",
        "features_scheduled and features_stream would write in target prod",
        line="stream_status: UNPAUSED",
    ),
    "no writer": Mistake(
        MAIN,
        "      stream_status: UNPAUSED\n",
        "      stream_status: PAUSED\n",
        "no job would write in target prod",
    ),
    "a mode that is not so": Mistake(
        MAIN,
        "      mode: stream\n",
        "      mode: scheduled\n",
        "mode is 'scheduled' in target prod, but features_stream runs",
    ),
    "a writer on serverless compute": Mistake(
        SCHEDULED,
        "          job_cluster_key: writer\n          max_retries: 1\n",
        "          environment_key: writer\n",
        "task 'run' writes on serverless compute",
    ),
    "a writer on a cluster of many users": Mistake(
        MAIN,
        "data_security_mode: SINGLE_USER",
        "data_security_mode: USER_ISOLATION",
        "with data_security_mode USER_ISOLATION (expected: SINGLE_USER)",
    ),
    "an old runtime": Mistake(
        MAIN,
        "spark_version: 19.x-scala2.13",
        "spark_version: 17.3.x-scala2.13",
        "with spark_version 17.3.x-scala2.13 (expected: 19.x-scala2.13 or newer)",
    ),
    "two runs at once": Mistake(
        STREAM, "max_concurrent_runs: 1", "max_concurrent_runs: 2", "runs once at a time"
    ),
    "writers side by side": Mistake(
        SCHEDULED,
        "          depends_on:\n            - task_key: quality\n",
        "",
        "'run' and 'maintain' may write at the same time",
        line="- task_key: maintain",
    ),
    "retries in a continuous job": Mistake(
        STREAM,
        "          job_cluster_key: writer\n          python",
        "          job_cluster_key: writer\n          max_retries: 3\n          python",
        "takes no max_retries",
        line="max_retries",
    ),
    "a secret": Mistake(
        ALERT,
        "  alerts:",
        "  # token: dapi0123456789abcdef0123456789abcdef\n  alerts:",
        "looks like a Databricks token",
    ),
    "a password": Mistake(
        AUDIT, "      tasks:", "      # kafka.password = hunter22\n      tasks:", "a password"
    ),
    "no uuid": Mistake(
        MAIN,
        "  uuid: 5ef11970-fd12-4a12-b47f-94d69055ad4c\n",
        "",
        "'bundle' has no 'uuid'",
        line="bundle:",
    ),
    "bad cron": Mistake(
        MAIN,
        "default: 0 0/15 * * * ?",
        'default: "*/15 * * * *"',
        "'*/15 * * * *' is no Quartz expression in target dev: it has 5 fields, not 6 or 7",
        line="quartz_cron_expression",
        where=SCHEDULED,
    ),
    "no YAML": Mistake(MAIN, "targets:", "targets: [", "is no YAML", line="mode: development"),
    "no TOML": Mistake("pyproject.toml", "[project]\n", "[project\n", "is no TOML: "),
    "a key twice": Mistake(
        MAIN,
        "  staging:\n",
        "  dev:\n    mode: development\n  staging:\n",
        "'dev' stands here twice",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found(name: str, copied: Path) -> None:
    mistake = MISTAKES[name]
    file, line = mistake.plant(copied)
    if name == "a key twice":
        line = next(f.line for f in found_in(copied))
        assert (copied / file).read_text().splitlines()[line - 1] == "  dev:"
    answer = call("bundle", "check", "--folder", copied, "--no-sql")
    assert answer.code == 1, answer
    there = [row for row in answer.out.splitlines() if row.startswith(f"{file}:{line}: ")]
    assert any(mistake.told in row for row in there), answer.out


def test_any_toml_declares_the_wheel(copied: Path) -> None:
    path = copied / "pyproject.toml"
    path.write_text("project = {'name' = 'tidemill', scripts.'tidemill' = 'tidemill.cli:main'}\n")
    assert list(map(str, found_in(copied))) == []


def test_without_the_parser_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "databricks.bundles.jobs", None)
    with pytest.raises(SetupError, match="pip install databricks-bundles jsonschema"):
        found_in(ROOT)
    assert call("bundle", "check", "--folder", ROOT, "--no-sql").code == 2


def test_a_folder_without_a_bundle(tmp_path: Path) -> None:
    answer = call("bundle", "check", "--folder", tmp_path, "--no-sql", "--json")
    assert (answer.code, answer.error["message"]) == (2, "there is no databricks.yml")


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("0 0/15 * * * ?", None),
        ("0 0 12 ? * MON-FRI", None),
        ("0 0 0 L * ? 2026-2030", None),
        ("0 0 25 * * ?", "'25' is no hours"),
        ("0 0 12 * * *", "one of day of month and day of week is ?, the other not"),
        ("0 0/0 12 * * ?", "'0/0' is no minutes"),
    ],
)
def test_quartz(expression: str, told: str | None) -> None:
    assert cron.wrong(expression) == told


# -- SQL -----------------------------------------------------------------------------------------


@pytest.fixture
def asked(spark: SparkSession, empty_lake: Path) -> SparkSession:
    """The session, an empty lake's schema its current one."""
    from tidemill.config.pipeline_file import load
    from tidemill.lake.open import open_for_writing

    open_for_writing(spark, Place(empty_lake), load("engagement"))
    return spark


def test_dashboards_and_alerts_run(asked: SparkSession) -> None:
    assert writers.pipelines(BUNDLE) == ["engagement"]
    assert list(map(str, sql.check(BUNDLE, asked))) == []


DASHBOARD = "resources/dashboards/features.lvdash.json"
SQL_MISTAKES = {
    "unknown column": Mistake(
        DASHBOARD,
        "SELECT hour, events, accepted, ",
        "SELECT hour, events, acepted, ",
        "cannot be resolved",
    ),
    "unknown view": Mistake(
        DASHBOARD, "FROM tidemill_volumes", "FROM tidemill_volume", "TABLE_OR_VIEW_NOT_FOUND"
    ),
    "a dashboard that writes": Mistake(
        DASHBOARD, "SELECT ingest_date, reason, records\\n", "DELETE\\n", "does not only read"
    ),
    "a widget's expression": Mistake(
        DASHBOARD, "SUM(`step_seconds`)", "SUM(`step_second`)", "cannot be resolved"
    ),
    "a widget's field": Mistake(
        DASHBOARD,
        '"fieldName": "age_seconds"',
        '"fieldName": "age_second"',
        "asks for no 'age_second'; did you mean 'age_seconds'?",
    ),
    "a widget's dataset": Mistake(
        DASHBOARD,
        '"datasetName": "titles"',
        '"datasetName": "title"',
        "there is no dataset 'title'",
    ),
    "broken alert": Mistake(
        ALERT, "SELECT age_seconds FROM", "SELEC age_seconds FROM", "does not only read"
    ),
    "alert on an unknown column": Mistake(
        ALERT, "          name: age_seconds", "          name: age", "the query yields no 'age'"
    ),
    "a dashboard of another schema": Mistake(
        BOARD, "dataset_schema: ${var.schema}", "dataset_schema: default", "does not look into"
    ),
}


@pytest.mark.parametrize("name", SQL_MISTAKES)
def test_a_mistake_in_sql_is_found(name: str, copied: Path, asked: SparkSession) -> None:
    mistake = SQL_MISTAKES[name]
    where = mistake.plant(copied)
    (finding,) = sql.check(bundles.read(copied), asked)
    assert (finding.file, finding.line) == where
    assert mistake.told in finding.message


def test_the_command_runs_the_sql_too(copied: Path, spark: SparkSession) -> None:
    SQL_MISTAKES["unknown column"].plant(copied)
    answer = call("bundle", "check", "--folder", copied, "--json")
    assert answer.code == 1
    files = [finding["file"] for finding in answer.json["findings"]]
    assert files == [DASHBOARD]


# -- each task's command line, on a lake of this machine -----------------------------------------

SCHEMA = "tidemill_bundle"


@dataclass(frozen=True)
class Deployed:
    """The bundle's tasks, variables resolved to this machine, everything else as it is written."""

    folder: Path

    @property
    def target(self) -> Target:
        places = {name: str(self.folder / name) for name in ("checkpoints", "reports")}
        lake = {"catalog": "spark_catalog", "schema": SCHEMA}
        given = {**lake, **places, "input": str(self.folder / "landing"), "trigger": "1s"}
        return Target(BUNDLE, "staging", given)

    def words(self, job: str) -> dict[str, list[str]]:
        """The command line of each task, in the order in which they run."""
        found = {
            task["task_key"]: task
            for each in BUNDLE.of("jobs")
            if each.key == job
            for _, task in items(self.target.resolved(each.value), "tasks")
        }
        after = {
            key: [d["task_key"] for d in task.get("depends_on", [])] for key, task in found.items()
        }
        keys = TopologicalSorter(after).static_order()
        return {key: found[key]["python_wheel_task"]["parameters"] for key in keys}

    def put(self, name: str, events: list[Event]) -> None:
        """A file in the landing folder."""
        write_file(self.folder / "landing", name, records_of(events))

    def features(self, spark: SparkSession) -> dict[str, int]:
        rows = spark.table(f"spark_catalog.{SCHEMA}.engagement_features").collect()
        return {row["profile_id"]: row["view_count_1h"] for row in rows}


@pytest.fixture(scope="module")
def deployed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """What the bundle's resources make before a job runs: the schema and the volumes' folders."""
    folder = tmp_path_factory.mktemp("deployed")
    for name in ("checkpoints", "landing", "reports"):
        (folder / name).mkdir()
    spark.sql(f"CREATE SCHEMA {SCHEMA} LOCATION '{folder / 'tables'}'")
    yield Deployed(folder)
    spark.catalog.setCurrentDatabase("default")
    spark.sql(f"DROP SCHEMA {SCHEMA} CASCADE")


def test_the_scheduled_job_runs_here(deployed: Deployed, spark: SparkSession) -> None:
    deployed.put("1.jsonl", [("e1", "p1", "g", "view", at("11:30"))])
    commands = deployed.words("features_scheduled")
    assert list(commands) == ["run", "quality", "maintain", "report"]
    for key, words in commands.items():
        assert_done(call(*words), key)
    assert deployed.features(spark) == {"p1": 1}
    assert (deployed.folder / "reports" / "engagement.html").is_file()


def test_the_audit_runs_here(deployed: Deployed) -> None:
    for key, words in deployed.words("features_audit").items():
        assert_done(call(*words), key)


@pytest.mark.stream
def test_the_stream_runs_here_until_it_is_told_to_end(
    deployed: Deployed, spark: SparkSession
) -> None:
    deployed.put("2.jsonl", [("e2", "p2", "g", "view", at("11:40"))])
    log = deployed.folder / "tables" / "engagement_buckets"
    ending = threading.Thread(target=end_after, args=(log, deltalog.newest(log)), daemon=True)
    ending.start()
    (words,) = deployed.words("features_stream").values()
    assert_done(call(*words), "stream")
    assert deployed.features(spark) == {"p1": 1, "p2": 1}


def end_after(table: Path, version: int) -> None:
    """Send this process SIGTERM, as a cluster does, when a batch has appended to the table; the
    batch ends first."""
    limit = time.monotonic() + 120
    while deltalog.newest(table) <= version and time.monotonic() < limit:
        time.sleep(0.2)  # a table tells of its commits only when asked
    os.kill(os.getpid(), signal.SIGTERM)


def assert_done(answer: Answer, key: str) -> None:
    assert answer.code == 0, f"{key}: {answer.err or answer.out}"
