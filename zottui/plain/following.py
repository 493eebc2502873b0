"""Shows the runs of a chat while its user goes on typing.

A line that is typed meanwhile joins what runs, at its next step. When it came too late for that, its own run is shown
next. After a run that did not end well what waits is held, and nothing more is shown.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from zotd.client import slash
from zotd.client.blocking import Connection, Json
from zotd.client.errors import ClientError, NoAnswerError
from zotd.client.fields import text
from zotd.client.outcome import Outcome
from zotd.client.running import follow, start
from zotd.client.runs import Run

HELD = "(a run stopped before it was done: /continue resumes it, a prompt starts a new run)"

QUEUED = "(queued until this run ends)"

STEER, QUEUE = "steer", "queue"
"""What may become of a line while something runs; also the commands that say so."""

Line = tuple[str, str]
"""Words for the model, and when it is to read them: `STEER` or `QUEUE`."""


class RunPrinter:
    """The runs that one chat shows."""

    def __init__(
        self,
        connection: Connection,
        *,
        typed: Callable[[], Sequence[Line]],
        show: Callable[[Json], None],
        say: Callable[[str], None],
    ) -> None:
        """`typed` waits until the daemon or the user has something to say; the lines that are for what runs.

        `show` prints an event, `say` a line of ours.
        """
        self._connection = connection
        self._typed = typed
        self._show = show
        self._say = say
        self._own: list[str] = []
        """Inputs from here that the model has not been shown."""

    def prompt(self, session: str, line: str, when_busy: str | None = None) -> None:
        """Give an attached session an input, and show what comes of it."""
        self.follow(session, self._start(session, line, when_busy))

    def follow(self, session: str, run: Run) -> None:
        """Show a run to its end, and then those of what was typed meanwhile and did not join it."""
        try:
            went_well = self._followed(session, run)
            while went_well and self._own:
                went_well = self._followed(session, Run(self._own[0], None))
            if self._own:
                self._say(HELD)
        finally:
            self._own.clear()

    def _followed(self, session: str, run: Run) -> bool:
        outcome = Outcome()

        def show(_: bytes, event: Json) -> None:
            outcome.see(event)
            if event.get("type") == "user_message" and text(event, "input") in self._own:
                self._own.remove(text(event, "input"))  # it stands there already, where it was typed
            else:
                self._show(event)

        follow(self._connection, session, run, show, frames=self._frames(session))
        return outcome.failure is None

    def _frames(self, session: str) -> Iterator[tuple[bytes, Json]]:
        while True:
            with suppress(NoAnswerError):  # that was all for now
                yield from self._connection.lines(0)
            for line, when_busy in self._typed():
                self._start_meanwhile(session, line, when_busy)

    def _start_meanwhile(self, session: str, line: str, when_busy: str) -> None:
        try:
            run = self._start(session, line, when_busy)
        except ClientError as error:
            self._show({"type": "error", "message": str(error)})
            return
        if when_busy == QUEUE and run.run_id is None:
            self._say(QUEUED)

    def _start(self, session: str, line: str, when_busy: str | None) -> Run:
        run = start(self._connection, session, line, when_busy)
        if run.input_id is not None:
            self._own.append(run.input_id)
        return run


def meanwhile(line: str) -> Line | None:
    """What a line that is typed while something runs is for; None: it is a command, for later."""
    command = slash.parsed(line)
    if command is None:
        return slash.unescaped(line), STEER
    name, words = command
    return (words, name) if name in {STEER, QUEUE} else None
