"""Where the time of a run's batches goes, found by looking at its threads while they work."""
