"""What an event must be: its record parsed once, its rules, and their reasons.

record        the record as the rules see it
predicates    every rule in one pass: what clean splits records by
"""

from tidemill.quality.predicates import judge
from tidemill.quality.record import EVENT_ID

__all__ = ["EVENT_ID", "judge"]
