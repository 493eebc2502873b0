"""What can go wrong between a program and the daemon. The message of each is one sentence for its user.

ClientError
├── NotRunningError        nobody listens at the socket
├── StartError             the daemon could not be started
├── NoAnswerError          it did not answer in time
├── ConnectionLostError    the connection ended, by the daemon or by its death
├── CallError              it refused a command; `code` says why, for programs
├── RunFailedError         a run or a compaction failed
├── BusyError              a second prompt on a session object whose first one is still read
└── FellBehindError        this program read a session's events too slowly

A programmer's mistake, such as an unknown command, is a `ValueError`.
"""


class ClientError(Exception):
    """Any failure between this program and the daemon."""


class NotRunningError(ClientError):
    """Nobody listens at the socket."""


class StartError(ClientError):
    """The daemon could not be started; says why, and where its log is."""


class NoAnswerError(ClientError):
    """The daemon did not answer in time. What was asked may still be done."""


class ConnectionLostError(ClientError):
    """The connection ended. Sessions and their runs go on without it."""


class CallError(ClientError):
    """The daemon refused a command."""

    def __init__(self, code: str, sentence: str) -> None:
        """Keep `code` (`docs/protocol.md`) for programs and `sentence` for people."""
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


class RunFailedError(ClientError):
    """A run, or a compaction, ended with an error."""


class BusyError(ClientError):
    """The session object already reads a prompt; take a second one, or read the first to its end."""


class FellBehindError(ClientError):
    """Too many events of a session were waiting to be read; attach again with a cursor to get them."""
