"""What a running pipeline reports: metrics, status, a page."""
