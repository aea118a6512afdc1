"""The public API on a lake; `import tidemill` has its names."""

from tidemill.api.lake import Lake
from tidemill.api.open import open_lake
from tidemill.api.quarantine import Quarantine
from tidemill.query.charts import chart, show
from tidemill.query.gold_history import GoldVersion, Status

__all__ = ["GoldVersion", "Lake", "Quarantine", "Status", "chart", "open_lake", "show"]
