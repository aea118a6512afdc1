"""Recompute: days of a stream's rows, and of a view's features, made again from the events.

events ──► rows of a day, features at its end ──► <name>_batch, one commit for each day
what people read until then ─ compared ─► how many are different, by cause
<name>_merged = recomputed days, and for all others what is live

wanted_days   which days: what is over and not recomputed, what late events have touched since
stream_days   a stream's day, and what differs from the stream's own rows
view_days     a view's day, and gold compared with the buckets and the events
gold_check    gold compared with the buckets and the events, and corrected
late_causes   why rows of a stream differ: late, waiting, unexplained
day_by_day    one after the other, told of
"""
