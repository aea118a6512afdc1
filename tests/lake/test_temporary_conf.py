"""Settings for a block: what was unset is unset again, also after an error."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.lake.session.temporary_conf import temporary_conf


class Session:
    """What a session's `conf` has of pyspark's: classic and Connect read an unset one as None."""

    def __init__(self, **settings: str):
        self.settings, self.conf = settings, self

    def get(self, name: str, default: str | None) -> str | None:
        return self.settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        if value == "refused":
            raise ValueError(name)
        self.settings[name] = value

    def unset(self, name: str) -> None:
        self.settings.pop(name, None)


def test_each_setting_is_as_before() -> None:
    spark: Any = Session(kept="1", other="2")
    with temporary_conf(spark, {"kept": "3", "new": "4"}):
        assert spark.settings == {"kept": "3", "other": "2", "new": "4"}
        with temporary_conf(spark, {"new": "5"}):
            assert spark.settings["new"] == "5"
        assert spark.settings["new"] == "4"
    assert spark.settings == {"kept": "1", "other": "2"}


def test_after_an_error_too() -> None:
    spark: Any = Session(kept="1")
    with pytest.raises(KeyError), temporary_conf(spark, {"kept": "2", "new": "3"}):
        raise KeyError
    assert spark.settings == {"kept": "1"}
    with pytest.raises(ValueError), temporary_conf(spark, {"kept": "2", "new": "refused"}):
        pass
    assert spark.settings == {"kept": "1"}
