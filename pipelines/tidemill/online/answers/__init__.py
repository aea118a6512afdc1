"""From what is asked of published views to answers, over HTTP or in the same process."""
