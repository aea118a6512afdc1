"""What features are: how their values lie over the keys, and what they were of one key."""
