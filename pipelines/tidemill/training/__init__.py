"""Training sets: what the features of a key were at a time."""
