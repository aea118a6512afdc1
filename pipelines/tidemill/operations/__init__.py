"""What is done to a lake beside its pipeline: maintenance, rebuilds, repairs."""
