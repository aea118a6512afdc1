"""Rules over features: when one becomes true for a key, and when it is over."""
