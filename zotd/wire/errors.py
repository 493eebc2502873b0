"""Error codes of a failed response: a closed set (`docs/protocol.md`)."""

from enum import StrEnum


class Code(StrEnum):
    """Reason of a failed command, for programs; the response also has a sentence for people."""

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
    """A command failed; the sender gets the code and the sentence.

    Raised anywhere below the dispatcher, which turns it into a response (`zotd.api.dispatch`).
    """

    def __init__(self, code: Code, sentence: str) -> None:
        """`code` is for programs, `sentence` for people."""
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
