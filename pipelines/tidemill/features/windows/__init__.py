"""Windows and lengths of time: how they are written, and where they start and end."""

from tidemill.features.windows.lengths import FARTHEST, HOUR, duration
from tidemill.features.windows.window import LONGEST, Window

__all__ = ["FARTHEST", "HOUR", "LONGEST", "Window", "duration"]
