"""What a batch of each query does, a module each: `start(pipeline, query, trigger)` starts it."""
