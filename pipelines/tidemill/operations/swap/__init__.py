"""A whole generation made again beside the living one, compared with it, and put in its place.

    source ──rebuild --from source──► <root>/_rebuild/<pipeline>     a lake of its own
                                            │ diff     its features at gold's as_of, and gold
    <root> ◄──────────── swap ──────────────┘          its tables and checkpoints for the living,
                                                       then one MERGE of gold's rows that differ

What was living lies beside after a swap, as it stood: the next swap takes it back, and it reads on
from where it was. Gold stays where it is: whoever reads or follows it sees new values in it.
"""
