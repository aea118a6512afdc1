"""Features as they were true at a time, of the buckets: `mode="event"`.

spine's rows ──┬─ gathered_sums   terms that add up, of few bucket rows: looked up in place
               └─ event_values    the others: edges and bucket rows brought together by Spark
                      └─ running_sums   a window is a difference of running sums, in both
"""
