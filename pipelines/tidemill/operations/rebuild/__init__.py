"""Tables made again: all of them from bronze, or a part of the buckets from the events.

from_bronze     events, quarantine and buckets, under a new generation
part            features, keys, a time on, or whole views
                new_features    columns that the buckets lack, in the bucket table itself
                replacement     the rest, staged beside it and put in place at once
"""
