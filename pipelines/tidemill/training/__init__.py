"""Training sets: what the features of a key were at a time.

    spine ──keys, times──► edges of windows ──┬─ mode="event"   what was true then, by buckets
                                              └─ mode="served"  gold: what it answered then
          ◄──────────── the spine's rows with the features of each view

A row's windows end at the edge of its time: the last end of a bucket at or before it. So no event
at or after the edge is in its values.
"""
