"""Errors of the proxy; each message is a clause without a full stop."""


class HostError(Exception):
    """A host, a port or a rule of hosts is malformed."""


class RefusedHostError(Exception):
    """A host may not be reached."""


class UnreachableError(Exception):
    """A host that may be reached has no address, or does not answer."""


class BadRequestError(Exception):
    """A client sent something that is no request; `answer` is what it gets before the connection is closed."""

    def __init__(self, message: str, answer: bytes) -> None:
        super().__init__(message)
        self.answer = answer
