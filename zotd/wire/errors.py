"""Error codes of a failed response: a closed set (`docs/protocol.md`)."""

from enum import StrEnum


class Code(StrEnum):
    """What a program can decide on; the sentence beside it is for people."""

    BAD_REQUEST = "bad_request"
    TOO_LARGE = "too_large"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    DUPLICATE_KEY = "duplicate_key"
    ALREADY_RESOLVED = "already_resolved"
    STALE_ARGS = "stale_args"
    BUSY = "busy"
    QUEUE_FULL = "queue_full"
    OVERLOADED = "overloaded"
    BUDGET_EXCEEDED = "budget_exceeded"
    BLOCKED = "blocked"
    UNSUPPORTED = "unsupported"
    STORAGE_BLOCKED = "storage_blocked"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    SHUTTING_DOWN = "shutting_down"
    INTERNAL = "internal"


class CommandError(Exception):
    """A command failed in a way its sender should read.

    Raised by whoever notices; turned into a response in one place, `zotd.api.dispatch`.
    """

    def __init__(self, code: Code, sentence: str) -> None:
        """Keep `code` for programs and `sentence` for people."""
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
