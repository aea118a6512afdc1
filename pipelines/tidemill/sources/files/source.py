"""A folder of files as a source: JSON lines, or Parquet.

Files are read once, by path: put them there whole (write beside, then rename), and never change
one. Sub-folders are read; names that start with `_` or `.` and names of other kinds are not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from sqlglot import exp

from tidemill.errors import InputError
from tidemill.sources.files.intake import KEEP, Intake
from tidemill.sources.files.parquet import Footer, check_magic, common_schema, read_footer

JSON = tuple(
    f".{kind}{packed}" for kind in ("json", "jsonl", "ndjson") for packed in ("", ".gz", ".bz2")
)
PARQUET = (".parquet",)
HIDDEN = ("_", ".")
BLANK = " \t\r\n\v\f\ufeff"
"""What a line may hold and still be nothing; the last is the byte order mark."""

MOST_FOOTERS = 500
"""Footers read at start; of more files an even share, oldest to newest."""

CLOCK_STEP = 5.0
"""Seconds by which a file system's times may be behind the clock."""

FIRST_NANOS = 10**17
"""A smaller number is microseconds (until the year 5138), a larger one nanoseconds (from 1973)."""

JSON_TIMES = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
}


@dataclass(frozen=True)
class Files:
    """The files of a local folder; `required` are the columns (and types) every Parquet file has.

    A file of JSON lines is a record per line, and the payload is that line; blank lines are
    nothing. A Parquet row's payload is its `to_json`: columns that are null are left out,
    times are ISO in UTC with microseconds, and without a zone they count as UTC.
    """

    folder: Path
    max_files_per_trigger: int = 1000
    required: Mapping[str, str] = field(default_factory=dict, hash=False)
    intake: Intake = KEEP

    def __post_init__(self) -> None:
        """Make the folder absolute."""
        object.__setattr__(self, "folder", Path(os.path.abspath(self.folder)))

    def identity(self) -> dict[str, str | int]:
        """Return kind and absolute folder: a moved folder is another source, and Auto Loader's
        checkpoint is another one than Spark's."""
        found_by = {"reader": "auto_loader"} if self.intake.auto_loader else {}
        return {"kind": "files", "folder": str(self.folder), **found_by}

    def check(self, *, once: bool) -> None:
        """Raise InputError for what is wrong at start: folder, mixture, an unreadable file.

        `once` needs at least one file, unless those that are read go elsewhere. Every Parquet
        file's first and last bytes are read, and up to MOST_FOOTERS footers for the required
        columns.
        """
        self.intake.check(self.folder)
        files = self._files()
        if once and not files and not self.intake.removes:
            raise InputError(
                "there is no file of events in this folder",
                where=str(self.folder),
                expected=f"files named {' '.join(f'*{end}' for end in JSON + PARQUET)}",
            )
        self._check_files(files)

    def check_new(self, since: datetime) -> None:
        """Raise InputError for a file that is wrong and came, or was renamed, after a time.

        Files in folders that have not changed since are neither opened nor asked for their times.
        """
        self._check_folder()
        from_ = since.timestamp() - CLOCK_STEP
        _one_kind(self.folder, {_is_parquet(path): path for path in _walk(self.folder)})
        self._check_files(
            [path for path in _walk(self.folder, from_) if path.lstat().st_ctime >= from_]
        )

    def _check_files(self, files: list[Path]) -> None:
        for path in files:
            _check_readable(path)
        if files and _is_parquet(files[0]):
            for path in files:
                check_magic(path)
            for footer in _footers(files):
                self._check_columns(footer)

    def ready(self) -> bool:
        """Return whether a file is there, so that the format is known."""
        return bool(self._files())

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the files' records as a stream, oldest file first.

        topic is the file's path, source_ts its modification time, record_id a uuid; partition and
        offset are left out. The columns
        of Parquet files are those found now; a column that only later files have is not read.
        """
        files = self._files()
        if not files:
            raise InputError("no file yet, so no format", where=str(self.folder), expected="a file")
        if _is_parquet(files[0]):
            footers = _footers(files)
            _check_nanos(spark, footers)
            schema, nanos = common_schema(spark.read.options(**_local_options()), footers)
            rows = self._load(spark, "parquet", "[^_.]*.parquet", schema)
            return self._records(rows, _row_payload(schema.names, nanos))
        rows = self._load(spark, "text", "[^_.]*{" + ",".join(JSON) + "}")
        line = F.col("value")  # of most a look at the first letter is enough
        lines = rows.where(line.startswith("{") | (F.ltrim(line, F.lit(BLANK)) != ""))
        return self._records(lines, line)

    def _files(self) -> list[Path]:
        """Return the folder's files, oldest first; InputError for a mixture of both kinds."""
        self._check_folder()
        files = sorted(_walk(self.folder), key=lambda path: (_modified(path), path))
        _one_kind(self.folder, {_is_parquet(path): path for path in files})
        return files

    def _check_folder(self) -> None:
        if not self.folder.is_dir():
            error_text = "this is a file" if self.folder.exists() else "there is no such folder"
            raise InputError(error_text, where=str(self.folder), expected="a folder of files")

    def _check_columns(self, footer: Footer) -> None:
        missing = [name for name in self.required if name not in footer.columns]
        if missing:
            raise InputError(
                f"column {', '.join(missing)} missing; found {', '.join(footer.columns)}",
                where=str(footer.path),
                expected=", ".join(f"{name} {type_}" for name, type_ in self.required.items()),
            )

    def _load(
        self, spark: SparkSession, form: str, names: str, schema: StructType | None = None
    ) -> DataFrame:
        reader = self.intake.reader(spark, form, self.max_files_per_trigger)
        reader = reader.options(**_local_options(), pathGlobFilter=names)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.load(_literal(self.folder)).where(~_hidden(self.folder))

    def _records(self, rows: DataFrame, payload: Column) -> DataFrame:
        return rows.select(
            F.expr("uuid()").alias("record_id"),
            payload.alias("raw_payload"),
            _topic().alias("topic"),
            F.col("_metadata.file_modification_time").alias("source_ts"),
        )


def failing_file(error_text: str) -> str | None:
    """Return the path of the file that a Spark error's text blames, or None."""
    for pattern in (
        r"while reading file (\S+?)\.?(?:\s|$)",
        r"footer for file:? (\S+?)\.?(?:\s|$)",
        r"(\S+) is not a Parquet file",
    ):
        match = re.search(pattern, error_text)
        if match:
            return unquote(re.sub(r"^file:(//)?(?=/)", "", match[1]))
    return None


def _one_kind(folder: Path, kinds: Mapping[bool, Path]) -> None:
    """Raise InputError where a folder holds both kinds of files, a file of each given."""
    if len(kinds) == 2:
        raise InputError(
            f"this folder holds both {kinds[False].name} and {kinds[True].name}",
            where=str(folder),
            expected="JSON lines or Parquet, one of the two per folder",
        )


def _walk(folder: Path, changed: float = 0.0) -> Iterator[Path]:
    """Yield the files of the folders that changed since a time."""
    for here, folders, names in os.walk(folder, onerror=_raise_unreadable, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(HIDDEN)]
        if changed and os.stat(here).st_mtime < changed:
            continue
        for name in names:
            if name.endswith(JSON + PARQUET) and not name.startswith(HIDDEN):
                yield Path(here, name)


def _raise_unreadable(error: OSError) -> None:
    raise InputError(
        f"this folder cannot be read: {error.strerror}",
        where=str(error.filename),
        expected="a folder that this user may read",
    ) from error


def _check_readable(path: Path) -> None:
    if not os.access(path, os.R_OK):
        error_text = "this file cannot be read" if path.exists() else "this link leads nowhere"
        raise InputError(error_text, where=str(path), expected="a file that this user may read")


def _modified(path: Path) -> float:
    return path.lstat().st_mtime


def _is_parquet(path: Path) -> bool:
    return path.name.endswith(PARQUET)


def _footers(files: list[Path]) -> list[Footer]:
    return [read_footer(path) for path in files[:: -(-len(files) // MOST_FOOTERS)]]


def _check_nanos(spark: SparkSession, footers: list[Footer]) -> None:
    """Raise InputError where files hold nanoseconds and the session, not ours, refuses them."""
    conf = "spark.sql.legacy.parquet.nanosAsLong"
    path = next((footer.path for footer in footers if footer.nanos), None)
    if path and spark.conf.get(conf) != "true":
        raise InputError(
            "this file holds timestamps in nanoseconds, which this Spark session does not read",
            where=str(path),
            expected=f"the session setting {conf}=true, or timestamps in microseconds",
        )


def _literal(folder: Path) -> str:
    """Return the folder as a path in which Spark finds no pattern."""
    return re.sub(r"[\[\]{}*?\\]", r"\\\g<0>", str(folder))


def _local_options() -> dict[str, str]:
    """Return what makes Spark read a local name with a colon, as times have: no checksum files."""
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return {}
    raw = "org.apache.hadoop.fs.RawLocalFileSystem"
    return {"fs.file.impl": raw, "fs.file.impl.disable.cache": "true"}


def _topic() -> Column:
    """Return the row's file as a plain path; Spark has it as a URI, in which + is a plus.

    Written for speed, as it runs for every row: a path whose length nobody asks for is not counted
    letter by letter, and most paths need no decoding.
    """
    uri = F.col("_metadata.file_path")
    path = (
        F.when(uri.startswith("file:///"), F.substr(uri, F.lit(len("file:///"))))
        .when(uri.startswith("file:/"), F.substr(uri, F.lit(len("file:/"))))
        .otherwise(uri)
    )
    decoded = F.url_decode(F.replace(path, F.lit("+"), F.lit("%2B")))
    return F.when(uri.contains("%"), decoded).otherwise(path)


def _hidden(folder: Path) -> Column:
    """Return whether the row's file is in a folder that is not read; Spark itself reads `_a=b`."""
    uri, below = F.col("_metadata.file_path"), F.lit(len(str(folder)) + 1)
    perhaps = uri.contains("/_") | uri.contains("/.")  # so most rows need no regular expression
    return perhaps & F.substr(_topic(), below).rlike("/[_.]")


def _row_payload(columns: list[str], nanos: set[str]) -> Column:
    return F.to_json(F.struct(*[_column(name, name in nanos) for name in columns]), JSON_TIMES)


def _column(name: str, nanos: bool) -> Column:
    quoted = exp.to_identifier(name, quoted=True).sql(dialect="spark")
    if nanos:
        is_micros = f"{quoted} BETWEEN -{FIRST_NANOS} AND {FIRST_NANOS}"
        return F.expr(f"timestamp_micros(IF({is_micros}, {quoted}, {quoted} div 1000))").alias(name)
    return F.col(quoted)
