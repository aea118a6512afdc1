"""Streams: rows that follow the events, by Spark's own stateful operators or made again from them.

    events ──watermark──► joined | distinct ──► rows ──append──► the stream's table
    events ──► sessions that they touch, made again of their events ──MERGE──► the stream's table

stream_rows      which operator makes a stream's rows, and what Spark is asked to count meanwhile
input_rows       the events that an operator takes, with their watermark
joined           pairs of events, and those that stayed alone
distinct_rows    the first event of each key
windowed         totals of windows of time, and totals of these
row_batch        a batch of rows into the table, once
keyed_merge      rows into a table by their keys, in one commit
session_rows     events into sessions
session_batch    the sessions that a batch touches, into the table, once
stream_progress  what Spark's progress tells of a batch
state_limit      how much the state may hold
"""
