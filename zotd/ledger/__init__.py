"""One session's records and events, and what they cost."""
