"""Streams: rows that follow the events, by Spark's own stateful operators or made again from them.

    events ──watermark──► joined | distinct ──► rows ──append──► the stream's table
    events ──► first, last; sessions that they touch, made again ──MERGE──► the stream's table

stream_rows      which operator makes a stream's rows, and what Spark is asked to count meanwhile
operators        joins, distinct events, totals, processors
row_batch        a batch of rows into the table, once
keyed_merge      rows into a table by their keys, in one commit
span_batch       the first and last events of a batch, into the table, once
session_rows     events into sessions
session_batch    the sessions that a batch touches, into the table, once
session_statements, session_engines   which these are, asked of DuckDB or Spark
stream_progress  what Spark's progress tells of a batch
state_limit      how much the state may hold
"""
