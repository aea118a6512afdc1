from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemill.errors import InputError
from tidemill.sources.files.parquet import check_magic, read_footer

WHEN = datetime(2026, 11, 21, 10, 5, tzinfo=timezone.utc)


def write(path: Path, **columns: pa.Array) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_a_parquet_file_passes(tmp_path: Path):
    check_magic(write(tmp_path / "a.parquet", x=pa.array([1])))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "empty"),
        (b"PAR1", "4 bytes"),
        (b'{"profile_id": "p1"}', "20 bytes, from b'{\"pr'"),
        (b"PAR1 and then it was cut off", "to b' off'"),
    ],
)
def test_the_first_and_last_bytes_tell_what_is_no_parquet(
    tmp_path: Path, content: bytes, found: str
):
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no Parquet file") as error:
        check_magic(path)
    assert found in error.value.message
    assert error.value.where == str(path)


def test_a_footer_tells_columns_and_nanoseconds(tmp_path: Path):
    footer = read_footer(
        write(
            tmp_path / "a.parquet",
            micros=pa.array([WHEN], pa.timestamp("us", "UTC")),
            nanos=pa.array([WHEN], pa.timestamp("ns", "UTC")),
            local=pa.array([WHEN.replace(tzinfo=None)], pa.timestamp("ns")),
            nested=pa.array([{"nanos": 1}]),
        )
    )
    assert footer.columns == ("micros", "nanos", "local", "nested")
    assert footer.nanos == {"nanos", "local"}


def test_files_of_one_shape_are_alike(tmp_path: Path):
    one = read_footer(write(tmp_path / "1.parquet", x=pa.array([1])))
    two = read_footer(write(tmp_path / "2.parquet", x=pa.array([2, 3])))
    other = read_footer(write(tmp_path / "3.parquet", x=pa.array(["a"])))
    assert one.shape == two.shape != other.shape


def test_a_footer_that_is_garbage_names_the_file(tmp_path: Path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1" + b"\xff" * 40 + (40).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(InputError, match="footer cannot be read") as error:
        read_footer(path)
    assert error.value.where == str(path)
