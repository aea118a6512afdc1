"""Maintenance: keeps a lake small and quick, and changes no feature.

    hours      adds up, by the hour, the minute buckets that came since            <view>_hours
    history    keeps what gold answered, where the pipeline says so            <view>_history
    expire     removes buckets and hours older than the pipeline's history,
               and arrivals that the state has read                                buckets ...
    empty      removes rows that have been empty for longer than keep_empty        gold
    optimize   makes few files of many, where a partition is closed; orders gold,
               and replays                                                         every table
    vacuum     removes files that no version within the retention names            every table
    log        removes what nobody reads of a folder's log                         every table
    tidy       removes what a killed process left half-written                     checkpoints

A plan first: each step says what it found and why. Then the steps, each in a commit of its own:
dying between two of them, or losing one against a batch, leaves that one for the next time.
"""

from tidemill.operations.maintenance.maintenance import (
    ACTIONS,
    OFTEN,
    last,
    maintain,
    plan,
    row_of,
)
from tidemill.operations.maintenance.step import Done, Step

__all__ = ["ACTIONS", "OFTEN", "Done", "Step", "last", "maintain", "plan", "row_of"]
