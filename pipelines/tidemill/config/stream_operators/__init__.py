"""Streams of rows that follow the events, as a pipeline's file declares them.

stream        a stream: its name, and the one operator that makes its rows
inputs        the events that an operator reads, and how late they may be
join          pairs of events, each within a time of the other
distinct      the first event of each key within a time
span          the first and the last event of each key
sessions      the events of a key that follow each other without a long pause
window_totals totals of windows of time, and totals of these
process       what a processor makes of the events of a key, with a state of its own
processors    the kinds of processors: the shipped one, and those of installed packages
"""
