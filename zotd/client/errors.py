"""What can go wrong between a program and the daemon. The message of each is one sentence for its user.

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
    """Any failure between this program and the daemon."""


class NotRunningError(ClientError):
    """No process listens at the socket."""


class StartError(ClientError):
    """The daemon could not be started; says why, and where its log is."""


class NoAnswerError(ClientError):
    """The daemon did not answer in time. It may still carry out the request."""


class ConnectionLostError(ClientError):
    """The connection ended. Sessions and their runs continue without it."""


class CallError(ClientError):
    """The daemon refused a command."""

    def __init__(self, code: str, sentence: str) -> None:
        """Keep `code` (`docs/protocol.md`) for programs and `sentence` for people."""
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


class NotTextError(ClientError):
    """A request holds a byte that is not UTF-8, which JSON cannot carry. Nothing was sent."""

    def __init__(self, what: str, words: str) -> None:
        """`what`: the argument, as a person knows it. `words`: its value, with surrogates for the bytes."""
        at = next(number for number, letter in enumerate(words) if "\ud800" <= letter <= "\udfff")
        shown = words[max(0, at - SHOWN_CHARS) : at + SHOWN_CHARS].encode(errors="surrogateescape")
        excerpt = shown.decode(errors="backslashreplace")
        super().__init__(f'{what} is not UTF-8 at "{excerpt}"; nothing was sent. Convert it, or set a UTF-8 locale')


class RunFailedError(ClientError):
    """A run, or a compaction, ended with an error."""


class BusyError(ClientError):
    """The session object already reads a prompt; take a second one, or read the first to its end."""


class FellBehindError(ClientError):
    """Too many events of a session were waiting to be read; attach again with a cursor to get them."""


_CODES = {
    NotRunningError: "not_running",
    StartError: "start_failed",
    NoAnswerError: "no_answer",
    ConnectionLostError: "connection_lost",
    RunFailedError: "run_failed",
}


def code_of(error: ClientError) -> str:
    """What kind of error it is, for programs: the daemon's own code, one of the above, or `refused`, by the client."""
    return error.code if isinstance(error, CallError) else _CODES.get(type(error), "refused")
