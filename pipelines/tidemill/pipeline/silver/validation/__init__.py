"""What an event must be: its record parsed once, its rules, and their reasons.

record        the record as the rules see it
rules         the rules of a pipeline, as data
predicates    all of them in one pass: what clean splits records by
expectations  the same as a suite of Great Expectations, for records and for events
checks        what the gate asks of tables, as expectations too
checkpoint    the gate: validates, writes Data Docs
results       what each run of the gate found, in a table
"""

from tidemill.config.quality_file import EVENT_ID
from tidemill.pipeline.silver.validation.predicates import judge

__all__ = ["EVENT_ID", "judge"]
