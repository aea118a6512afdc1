"""The page of `tidemill report`."""
