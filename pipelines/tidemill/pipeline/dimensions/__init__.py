"""Dimensions: what is known of each key, kept by changes; `silver.lookup` is where events take it.

change_records   a record of a source as a change, or refused with every reason
change_batch     a batch: refused records into quarantine, changes into the dimension
change_order     the position of a change in its source's order, as a text that sorts
dimension_merge  the changes of a batch into the dimension, whatever order they come in
"""
