"""What makes a stream's rows of the events, by Spark's own stateful operators.

input_rows       the events that an operator takes, with their watermark
joined           pairs of events, and those that stayed alone
distinct_rows    the first event of each key
windowed         totals of windows of time, and totals of these
processed        what a processor makes of the events of a key
activity_spells  the shipped processor
"""
