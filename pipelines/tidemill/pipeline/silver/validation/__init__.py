"""What an event must be: its record, its rules, and their reasons.

plain_records which records break no rule, told from their texts without parsing them
record        the record as the rules see it
rules         the rules of a pipeline, as data
predicates    all of them in one pass: the reasons of each record
conditions    what plain and parsed records share
expectations  the same as a suite of Great Expectations, for records and for events
checks        what the gate asks of tables, as expectations too
checkpoint    the gate: validates, writes Data Docs
results       what each run of the gate found, in a table
"""

from tidemill.config.quality_file import EVENT_ID
from tidemill.pipeline.silver.validation.plain_records import PLAIN, plain
from tidemill.pipeline.silver.validation.predicates import NONE, judge, tried

__all__ = ["EVENT_ID", "NONE", "PLAIN", "judge", "plain", "tried"]
