"""Errors of jails."""


class JailError(Exception):
    """No jail is possible here; the message is a clause that says why."""
