"""Windows and lengths of time: how they are written, and where they start and end."""

from tidemill.features.windows.lengths import FARTHEST, HOUR, duration
from tidemill.features.windows.period import BEGINNING, BEGINNING_SECONDS
from tidemill.features.windows.window import LONGEST, Window

__all__ = ["BEGINNING", "BEGINNING_SECONDS", "FARTHEST", "HOUR", "LONGEST", "Window", "duration"]
