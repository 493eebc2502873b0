"""Errors between a program and the daemon. The message of each is one sentence for the user.

ClientError
├── NotRunningError        nothing listens at the socket
├── StartError             the daemon could not be started
├── NoAnswerError          it did not answer in time
├── ConnectionLostError    the connection ended, by the daemon or by its death
├── CallError              it refused a command; `code` says why, for programs
├── NotTextError           an argument has bytes that are not UTF-8; nothing was sent
├── RunFailedError         a run or a compaction failed
├── BusyError              a second prompt on a session object whose first one is still read
└── FellBehindError        this program read a session's events too slowly

A programmer's mistake, such as an unknown command, is a `ValueError`.
"""

SHOWN_CHARS = 20
"""Number of characters quoted before and after a byte that is not UTF-8."""


class ClientError(Exception):
    """Base class of errors between this program and the daemon."""


class NotRunningError(ClientError):
    """No process is listening on the socket."""


class StartError(ClientError):
    """The daemon could not be started; the message has the reason and the path of its log."""


class NoAnswerError(ClientError):
    """The daemon did not answer in time. It may still carry out the request."""


class ConnectionLostError(ClientError):
    """The connection ended. Sessions and their runs continue without it."""


class CallError(ClientError):
    """The daemon refused a command."""

    def __init__(self, code: str, sentence: str) -> None:
        """`code` (`docs/protocol.md`) is for programs, `sentence` for people."""
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


class NotTextError(ClientError):
    """A request contains a byte that is not UTF-8, which JSON cannot represent. Nothing was sent."""

    def __init__(self, what: str, words: str) -> None:
        """`what` names the argument for the user; `words` is its value, with surrogates for the bytes."""
        at = next(number for number, letter in enumerate(words) if "\ud800" <= letter <= "\udfff")
        shown = words[max(0, at - SHOWN_CHARS) : at + SHOWN_CHARS].encode(errors="surrogateescape")
        excerpt = shown.decode(errors="backslashreplace")
        super().__init__(f'{what} is not UTF-8 at "{excerpt}"; nothing was sent. Convert it, or set a UTF-8 locale')


class RunFailedError(ClientError):
    """A run or a compaction ended with an error."""


class BusyError(ClientError):
    """The session object is already reading a prompt; use a second object, or read the first prompt to its end."""


class FellBehindError(ClientError):
    """Too many unread events of a session; attach again with a cursor to get them."""


_CODES = {
    NotRunningError: "not_running",
    StartError: "start_failed",
    NoAnswerError: "no_answer",
    ConnectionLostError: "connection_lost",
    RunFailedError: "run_failed",
}


def code_of(error: ClientError) -> str:
    """Return the kind of error for programs: the daemon's code, a name of its own, or `refused` for other errors."""
    return error.code if isinstance(error, CallError) else _CODES.get(type(error), "refused")
