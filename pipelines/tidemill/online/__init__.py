"""The online store: a view's rows where an application asks for them, and how they get there."""
