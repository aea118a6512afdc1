"""The pages of `tidemill ui`: a lake in a browser, read without a session."""
