"""The public API on a lake; `import tidemill` has its names."""

from tidemill.api.opening import open_lake
from tidemill.api.public_lake import Lake
from tidemill.api.refused_records import Quarantine
from tidemill.query.charts import chart, show
from tidemill.query.gold_history import GoldVersion, Status
from tidemill.sources.kinesis.data_source import register_kinesis

__all__ = [
    "GoldVersion",
    "Lake",
    "Quarantine",
    "Status",
    "chart",
    "open_lake",
    "register_kinesis",
    "show",
]
