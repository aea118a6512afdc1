"""The command line: what it refuses, what it prints, and how it ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import typer.main
from pyspark.sql import SparkSession

from children import Children
from command_line import Answer, call
from lakes import Lakes
from runs import Small, of_files, opened, reading, write_file
from tidemill import cli
from tidemill.config.pipeline_file import SHIPPED
from tidemill.errors import LedgerError, QueryError, UsageError
from tidemill.pipeline import runner
from tidemill.pipeline.failures import explained
from tidemill.pipeline.observer import Observer
from tidemill.pipeline.queries import Pipeline
from tidemill.query import questions

pytestmark = pytest.mark.connect

COMMANDS = sorted(typer.main.get_command(cli.app).commands)  # type: ignore[attr-defined]
JAVA = ("\tat ", "org.apache", "Traceback", "Py4J")


def one_line(answer: Answer) -> str:
    """The one line on stderr, which is no stack trace."""
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1, answer.err
    assert not any(word in answer.err for word in JAVA)
    return answer.err.strip()


# -- help ----------------------------------------------------------------------------------------


def test_the_commands_are_those_of_the_contract() -> None:
    assert {"demo", "run", "refresh", "reconcile", "rebuild", "query", "sql", "doctor"} <= set(
        COMMANDS
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(command: str) -> None:
    answer = call(command, "--help")
    assert answer.code == 0
    assert f"Example:  tidemill {command} " in answer.out


# -- refused -------------------------------------------------------------------------------------

RUN_FILES = ("run", "engagement", "--source", "files", "--once")
REFUSED = [
    (("rnu",), "No such command 'rnu'"),
    (("run",), "Missing argument"),
    (("run", "engagement", "--onec"), "No such option: --onec"),
    (("refresh", "engagement", "--as-fo", "x"), "No such option: --as-fo"),
    (("run", "engagment"), "unknown pipeline 'engagment'; did you mean 'engagement'?"),
    (("run", "nothing.yaml"), "nothing.yaml: there is no such file"),
    (("refresh", "engagement", "--as-of", "yesterday"), "--as-of: 'yesterday' is no time"),
    (
        ("refresh", "engagement", "--as-of", "2026-11-21T10:05:30Z"),
        "'2026-11-21T10:05:30Z' is not a whole minute (expected: 2026-11-21T10:05:00Z)",
    ),
    (("refresh", "engagement", "--as-of", "2026-13-21T10:05Z"), "'2026-13-21T10:05Z' is no time"),
    (("refresh", "engagement", "--as-of", "2026-11-21"), "'2026-11-21' is no time of day"),
    (("refresh", "engagement", "--as-of", ""), "'' is no time"),
    (("refresh", "engagement", "--wait", "soon"), "'soon' is no length of time"),
    (("refresh", "engagement", "--wait", "-1s"), "'-1s' is no length of time"),
    (("run", "engagement", "--trigger", "often"), "'often' is no length of time"),
    (("run", "engagement", "--trigger", "0s"), "'0s' is no length of time"),
    (("run", "engagement", "--clock", "sun"), "clock: "),
    (("refresh", "engagement", "--mode", "magic"), "refresh: "),
    (("run", "engagement", "--source", "fiels"), "source"),
    (RUN_FILES, "a files source has no folder"),
    ((*RUN_FILES, "--input", "absent"), "absent: there is no such folder"),
    (("rebuild", "engagement", "--from", "gold"), "cannot rebuild from 'gold'"),
    (("rebuild", "engagement"), "a rebuild is of one thing, found nothing"),
    (("run", "engagement", "--catalog", "main"), "a catalog lake takes both"),
    (("sql", "featurse"), "unknown statement 'featurse'; did you mean 'features'?"),
    (("sql", "features", "--view", "engagment"), "did you mean 'engagement'?"),
    (("demo", "--minutes", "0"), "--minutes"),
    (("demo", "--start", "noon"), "--start: 'noon' is no time"),
]


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder without a lake, and no word of one in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("TIDEMILL_ROOT", "TIDEMILL_CATALOG", "TIDEMILL_SCHEMA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(("words", "found"), REFUSED, ids=[" ".join(w) for w, _ in REFUSED])
def test_refused(words: tuple[str, ...], found: str, nowhere: Path) -> None:
    answer = call(*words)
    assert answer.code == 2
    assert found in one_line(answer)
    as_json = call(*words, "--json")
    assert as_json.code == 2
    assert as_json.err == ""
    assert {type(value) for value in as_json.error.values()} <= {str, type(None)}
    assert as_json.error["kind"] in {"usage", "definition", "input", "lake"}
    assert as_json.error["message"]
    assert not any(nowhere.iterdir())


READERS = (("refresh", "engagement"), ("reconcile", "engagement"), ("query", "SELECT 1"))


@pytest.mark.parametrize("words", READERS, ids=" ".join)
@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda root: None, "does not exist"),
        (lambda root: root.mkdir(), "is no lake"),
        (lambda root: root.write_text("a file"), "is no lake"),
    ],
    ids=["absent", "empty", "file"],
)
def test_a_root_that_is_no_lake(words, make, found: str, tmp_path: Path) -> None:
    make(tmp_path / "root")
    answer = call(*words, "--root", tmp_path / "root", "--json")
    assert answer.code == 2
    assert (answer.error["kind"], answer.error["message"]) == ("lake", found)
    assert answer.error["where"] == str(tmp_path / "root")


@pytest.fixture
def run_words(tmp_path: Path) -> tuple[object, ...]:
    write_file(tmp_path / "in", "1.jsonl", ["{}"])
    return ("run", "engagement", "--source", "files", "--input", tmp_path / "in", "--once")


def test_a_root_that_holds_other_files(run_words, tmp_path: Path) -> None:
    answer = call(*run_words, "--root", tmp_path, "--json")
    assert answer.code == 2
    assert (answer.error["kind"], answer.error["message"]) == ("lake", "holds files, but no lake")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_root_that_is_a_file(run_words, tmp_path: Path) -> None:
    (tmp_path / "root").write_text("mine")
    answer = call(*run_words, "--root", tmp_path / "root", "--json")
    assert answer.code == 2
    assert answer.error["message"] == "cannot be written: File exists"
    assert (tmp_path / "root").read_text() == "mine"


def test_a_root_that_cannot_be_written(run_words, tmp_path: Path) -> None:
    root = tmp_path / "fixed" / "lake"
    root.parent.mkdir(mode=0o500)
    if os.access(root.parent, os.W_OK):  # the superuser may write anywhere but in the kernel's
        root = Path("/proc/lake")
    answer = call(*run_words, "--root", root, "--json")
    assert answer.code == 2
    assert (answer.error["kind"], answer.error["where"]) == ("lake", str(root))
    assert str(answer.error["message"]).startswith("cannot be written: ")


def test_a_root_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "_tidemill.json").write_text('{"format": "99"}')
    answer = call("reconcile", "engagement", "--root", tmp_path, "--json")
    assert (answer.code, answer.error["message"]) == (2, "has format 99")


# -- query ---------------------------------------------------------------------------------------

WRITES = [
    "INSERT INTO engagement_features VALUES (1)",
    "insert into engagement_features select 1",
    "WITH new AS (SELECT 1) INSERT INTO engagement_features SELECT * FROM new",
    "FROM engagement_events INSERT INTO engagement_features SELECT 1",
    "DROP TABLE engagement_features",
    "DELETE FROM engagement_features",
    "UPDATE engagement_features SET gti = 'x'",
    "MERGE INTO engagement_features USING x ON true WHEN MATCHED THEN DELETE",
    "ALTER TABLE engagement_features DROP COLUMN gti",
    "CREATE TABLE x AS SELECT 1",
    "SET spark.sql.ansi.enabled = false",
    "VACUUM engagement_features RETAIN 0 HOURS",
    "\n-- SELECT\nDROP TABLE x",
    "/* SELECT 1 */ TRUNCATE TABLE x",
    "",
    ";",
    "'SELECT'",
]
SEVERAL = ["SELECT 1; SELECT 2", "SELECT 1; DROP TABLE engagement_features", "SELECT ';';SELECT 1;"]


@pytest.mark.parametrize("sql", WRITES)
def test_query_refuses_what_writes(sql: str, tmp_path: Path) -> None:
    answer = call("query", sql, "--root", tmp_path, "--json")
    assert answer.code == 2
    assert answer.error["expected"] == "one SELECT, WITH, SHOW or DESCRIBE"
    assert "does not only read" in one_line(call("query", sql, "--root", tmp_path))


@pytest.mark.parametrize("sql", SEVERAL)
def test_query_refuses_several_statements(sql: str) -> None:
    assert call("query", sql, "--json").error["message"] == "holds several statements"


def test_query_refuses_an_open_quote() -> None:
    answer = call("query", "SELECT 'a", "--json")
    assert (answer.code, answer.error["kind"]) == (2, "usage")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1;",
        "select ';' as a;  ;",
        "SELECT 'DROP TABLE x; INSERT'",
        "WITH a AS (SELECT 1) SELECT * FROM a -- ; INSERT",
        "/* DROP */ SHOW TABLES",
        "DESCRIBE engagement_features",
    ],
)
def test_query_takes_what_reads(sql: str) -> None:
    assert questions.read_only(sql).rstrip("; ") == sql.rstrip("; ")
    with pytest.raises(UsageError):
        questions.read_only(f"{sql}\n; SELECT 2")


# -- JSON, counted by hand -----------------------------------------------------------------------
#
#   as_of 11:31        1 d = [20T11:31, 11:31)   12 h = [20T23:31, 11:31)   1 h = [10:31, 11:31)
#
#   20T11:30  20T23:30        10:00         11:30  11:30:59.9
#   p2 g view p2 g highlight  p1 g view     p1 g view (twice, one id)  p1 h select   + 2 refused
#   too old   1 d             1 d, 12 h     all                        all


def test_run_json(small: Small) -> None:
    summary = dict(small.summary)
    seconds = summary.pop("seconds")
    assert isinstance(seconds, float)
    assert seconds > 0
    assert summary == {
        "batches": 1,
        "events": 8,
        "accepted": 5,
        "quarantined": 2,
        "duplicates": 1,
        "keys_changed": 3,
        "as_of": "2026-11-21T11:31:00Z",
        "gold_version": 1,
    }


def test_query_json(small: Small) -> None:
    sql = "SELECT * EXCEPT (updated_at), updated_at FROM engagement_features ORDER BY 1, 2"
    answer = call("query", sql, "--root", small.root, "--json")
    assert answer.code == 0
    assert answer.json == {
        "columns": [
            *("profile_id", "gti"),
            *("select_count_1d", "highlight_count_1d", "view_count_1d"),
            *("select_count_12h", "highlight_count_12h", "view_count_12h"),
            *("select_count_1h", "highlight_count_1h", "view_count_1h"),
            "updated_at",
        ],
        "rows": [
            ["p1", "g", 0, 0, 2, 0, 0, 2, 0, 0, 1, "2026-11-21T11:31:00Z"],
            ["p1", "h", 1, 0, 0, 1, 0, 0, 1, 0, 0, "2026-11-21T11:31:00Z"],
            ["p2", "g", 0, 1, 0, 0, 0, 0, 0, 0, 0, "2026-11-21T11:31:00Z"],
        ],
    }


def test_query_for_people(small: Small) -> None:
    answer = call(
        "query", "SELECT gti, view_count_1d FROM engagement_current", "--root", small.root
    )
    assert answer.code == 0
    assert answer.out.split()[:2] == ["gti", "view_count_1d"]


def test_refresh_json(small: Small, tmp_path: Path) -> None:
    """At 12:31 the last hour is [11:31, 12:31): the views and the select of 11:30 have left it."""
    root = small.copy(tmp_path / "lake")
    words = ("refresh", "engagement", "--root", root, "--json", "--as-of")
    done = call(*words, "2026-11-21T12:31:00Z")
    assert done.code == 0
    told = done.json
    assert told.pop("seconds") > 0
    assert told == {
        "view": "engagement",
        "as_of": "2026-11-21T12:31:00Z",
        "mode": "incremental",
        "batch": 0,
        "keys_changed": 2,
        "gold_version": 2,
    }
    again = call(*words, "2026-11-21T12:31").json
    assert (again["keys_changed"], again["gold_version"]) == (0, 2)


def test_reconcile_json_and_repair(small: Small, tmp_path: Path, spark: SparkSession) -> None:
    root = small.copy(tmp_path / "lake")
    words = ("reconcile", "engagement", "--root", root, "--json")
    sound = {"view": "engagement", "as_of": "2026-11-21T11:31:00Z", "batch": 0, "keys": 3}
    clean = call(*words)
    judged = {"engine": "duckdb"}  # one that had no part in gold
    assert (clean.code, clean.json) == (0, {**sound, "gold_version": 1, "different": 0, **judged})

    reading(spark, root)  # makes its schema the current one
    spark.sql("UPDATE engagement_features SET view_count_1h = 7 WHERE gti = 'h'")
    spark.sql("DELETE FROM engagement_features WHERE profile_id = 'p2'")
    found = call(*words)
    assert (found.code, found.json) == (1, {**sound, "gold_version": 3, "different": 2, **judged})

    mended = call(*words, "--repair")
    after = {**sound, "gold_version": 4, "different": 0}
    assert (mended.code, mended.json) == (0, {**after, "engine": "spark", "repaired": 2})
    assert (call(*words).code, call(*words).json) == (0, {**after, **judged})
    nothing = call(*words, "--repair")
    assert (nothing.code, nothing.json) == (0, {**after, "engine": "spark", "repaired": 0})


def test_sql_json() -> None:
    answer = call("sql", "features", "--view", "engagement", "--json")
    assert answer.code == 0
    assert list(answer.json) == ["name", "view", "sql"]
    assert (answer.json["name"], answer.json["view"]) == ("features", "engagement")
    assert answer.json["sql"] == call("sql", "features").out
    assert "FROM engagement_buckets" in answer.json["sql"]
    assert "${" not in answer.json["sql"]


def test_doctor_json(tmp_path: Path) -> None:
    answer = call("doctor", "--root", tmp_path, "--json")
    assert list(answer.json) == ["checks"]
    for check in answer.json["checks"]:
        assert list(check) == ["name", "ok", "found", "expected", "fix"]
        assert bool(check["fix"]) is not check["ok"]
    assert answer.code == (0 if all(check["ok"] for check in answer.json["checks"]) else 1)


def test_doctor_finds_a_folder_that_cannot_be_written() -> None:
    answer = call("doctor", "--root", "/proc/lake", "--json")
    wrong = [check["name"] for check in answer.json["checks"] if not check["ok"]]
    assert answer.code == 1
    assert "folder" in wrong


# -- failures of Spark ---------------------------------------------------------------------------


def test_an_error_of_spark_is_one_line(small: Small, capfd: pytest.CaptureFixture[str]) -> None:
    for sql, code, found in (
        ("SELECT nope FROM engagement_features", 2, "nope"),
        ("SELECT * FROM nowhere", 2, "nowhere"),
        ("SELECT FROM WHERE", 2, "query: "),
        ("SELECT raise_error('on purpose')", 3, "on purpose"),
        ("SELECT CAST('x' AS INT)", 3, "'x'"),
    ):
        answer = call("query", sql, "--root", small.root)
        assert answer.code == code
        assert found in one_line(answer)
    assert capfd.readouterr() == ("", "")  # nor does the JVM, or a logger, print anything


def test_a_question_is_answered_by_the_quickest_engine_that_can(small: Small) -> None:
    """DuckDB in silence; where it might answer otherwise Spark, and stderr says why."""
    asked = "SELECT count(*) FROM engagement_features"
    plain = call("query", asked, "--root", small.root, "--json")
    assert (plain.json["columns"], plain.err) == (["count(1)"], "")
    by_spark = call("query", asked, "--root", small.root, "--json", "--engine", "spark")
    assert by_spark.json == plain.json
    other = call("query", "SELECT stddev(1) IS NULL AS n", "--root", small.root, "--json")
    assert other.json == {"columns": ["n"], "rows": [[True]]}
    assert other.err == "asking Spark, as DuckDB may answer otherwise: stddev\n"
    refused = call("query", "SELECT stddev(1) AS n", "--root", small.root, "--engine", "duckdb")
    assert refused.code == 2
    assert "--engine auto or spark" in one_line(refused)


def test_an_error_of_spark_as_json(small: Small) -> None:
    answer = call("query", "SELECT raise_error('on purpose')", "--root", small.root, "--json")
    assert (answer.code, answer.err) == (3, "")
    assert (answer.error["kind"], answer.error["where"]) == ("run", None)
    assert "on purpose" in str(answer.error["message"])
    assert not any(word in str(answer.error) for word in JAVA)


VIEW = """
pipeline: carts
source: {{kind: files}}
views:
  - name: carts
    keys: [k]
    event_time: at
    schema: {{k: string, x: bigint}}
    on_overflow: {rule}
    {select}
    features: [{{sum: x, over: [1h]}}]
"""


@pytest.mark.stream
@pytest.mark.parametrize(
    ("rule", "select", "table", "message"),
    [
        ("stop", "", "view carts", "feature x_sum_1h overflows for 1 keys, the first k=a"),
        (
            "null",
            "select: {y: [bigint, \"element_at(split(k, ''), x)\"]}",
            "carts_events",
            "batch 0 of clean failed: [DATATYPE_MISMATCH",
        ),
    ],
)
def test_an_error_in_a_batch_is_a_sentence(
    tmp_path: Path, rule: str, select: str, table: str, message: str
) -> None:
    """Table or view, batch, cure; nothing of the proxy that carried it, at the next start too."""
    (tmp_path / "carts.yaml").write_text(VIEW.format(rule=rule, select=select))
    lines = [f'{{"k": "a", "x": {2**63 - 1}, "at": "2026-11-21T10:00:0{n}Z"}}' for n in (1, 2)]
    write_file(tmp_path / "in", "1.jsonl", lines, age=60)
    words = ("run", tmp_path / "carts.yaml", "--source", "files", "--input", tmp_path / "in")
    for _ in range(2):
        answer = call(*words, "--once", "--root", tmp_path / "lake", "--json")
        assert answer.code == 3
        assert answer.error["where"] == table
        assert str(answer.error["message"]).startswith(message)
        assert "Proxy" not in str(answer.error) and "Traceback" not in str(answer.error)
        assert "on_overflow: null" in str(answer.error["expected"]) or "again" in str(answer.error)


def test_our_error_of_another_process_keeps_its_parts() -> None:
    said = "engagement_events: batch 3 was written before (expected: the same rows (see docs))"
    text = f"Return Message: Traceback\n x\ntidemill.errors.LedgerError: {said}\n\tat py4j"
    told = explained(RuntimeError(text), "clean")
    assert (type(told), str(told)) == (LedgerError, said)
    assert told.where == "engagement_events"


def test_our_error_is_read_where_it_is_whole() -> None:
    """Spark Connect's own error has it whole; the cause, of gRPC, is cut off."""
    said = "view carts: it overflows (expected: on_overflow: null, or a wider type)"
    trace = "Return Message: Traceback\n x\ntidemill.errors.RunError: "
    error = RuntimeError(f"{trace}{said}\n SQLSTATE: 38000")
    error.__cause__ = RuntimeError(f"{trace}{said[:30]}...")
    assert str(explained(error, "feature")) == said


def test_an_error_whose_java_process_is_gone() -> None:
    """py4j asks the JVM for the error's text, so the text itself fails."""

    class Gone(Exception):
        def __str__(self) -> str:
            raise ConnectionRefusedError

    told = explained(Gone(), "the command")
    assert told.exit_code == 3
    assert told.message == "the command failed: Spark's Java process is gone (Gone)"


def test_verbose_shows_the_whole_error(small: Small) -> None:
    answer = call(
        "query", "SELECT nope FROM engagement_features", "--root", small.root, "--verbose"
    )
    assert answer.code == 2
    assert "Traceback (most recent call last)" in answer.err
    assert "pyspark" in answer.err
    assert answer.err.splitlines()[-1].startswith("error: ")


# -- ends ----------------------------------------------------------------------------------------


def test_a_second_ctrl_c_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    stop = runner.Stop()
    with stop.on_signals():
        signal.raise_signal(signal.SIGINT)
        assert stop
        assert codes == []
        signal.raise_signal(signal.SIGTERM)
        assert codes == []
        signal.raise_signal(signal.SIGINT)
    assert codes == [130]


@pytest.mark.stream
def test_a_query_that_ends_by_itself_fails_the_run(
    small: Small, tmp_path: Path, spark: SparkSession
) -> None:
    """As when another process takes its checkpoint: Spark ends it without an exception."""
    definition = of_files(small.input)

    class EndClean(Observer):
        def on_idle(self, pipeline: Pipeline, busy: bool) -> None:
            for query in spark.streams.active:
                if query.name == "engagement_clean":
                    query.stop()

    with (
        opened(small.copy(tmp_path / "lake"), definition) as pipeline,
        pytest.raises(QueryError, match="clean ended by itself, without an exception") as failed,
    ):
        runner.run(pipeline, runner.Stop(), [EndClean()])
    assert failed.value.exit_code == 3
    assert spark.streams.active == []


# -- a bare wheel --------------------------------------------------------------------------------

WITHOUT_SPARK = """
import sys
from importlib.machinery import PathFinder

class WithoutSpark(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        absent = name.partition(".")[0] in {"pyspark", "delta", "py4j"}
        return None if absent else PathFinder.find_spec(name, path, target)

sys.meta_path = [WithoutSpark if finder is PathFinder else finder for finder in sys.meta_path]
import tidemill.cli, tidemill.errors, tidemill.features, tidemill.lake.statements
sys.argv = ["tidemill", *sys.argv[1:]]
tidemill.cli.main()
"""


def test_sql_runs_without_spark(children: Children) -> None:
    child = children.python("-c", WITHOUT_SPARK, "sql", "merge", "--view", "engagement")
    assert child.ended() == 0, child.err.read_text()
    assert child.out.read_text().startswith("-- merge:")


def test_run_without_spark_names_what_is_missing(children: Children, tmp_path: Path) -> None:
    child = children.python("-c", WITHOUT_SPARK, "reconcile", "engagement", "--root", tmp_path)
    assert child.ended() == 2
    assert "tidemill[local]" in child.err.read_text()
    assert "Traceback" not in child.err.read_text()


def test_a_lake_that_another_pipeline_made(lakes: Lakes, tmp_path: Path) -> None:
    lake = lakes.new()
    text = (SHIPPED / "engagement.yaml").read_text()
    (tmp_path / "other.yaml").write_text(text.replace("pipeline: engagement", "pipeline: other"))
    answer = call("reconcile", tmp_path / "other.yaml", "--root", lake.lake.place.root, "--json")
    assert answer.code == 2
    assert answer.error["message"] == "has no table other_bronze"
