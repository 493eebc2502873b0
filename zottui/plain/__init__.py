"""The chat in plain lines: for pipes, screen readers and terminals that can do no more."""
