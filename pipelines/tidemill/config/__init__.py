"""What a person writes: settings, pipeline files, quality files."""
