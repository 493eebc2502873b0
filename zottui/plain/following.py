"""Shows runs while the user keeps typing.

A line typed during a run is sent into it, before its next step. If it arrives too late for that, it gets a run of its
own, which is shown next. After a failed run the queue is held and nothing more is shown.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from zotd.client.blocking import Connection, Json
from zotd.client.errors import ClientError, NoAnswerError
from zotd.client.fields import text
from zotd.client.outcome import Outcome
from zotd.client.running import follow, start
from zotd.client.runs import Run
from zotd.wire import slash_lines

HELD = "(a run stopped before it was done: /continue resumes it, a prompt starts a new run)"

QUEUED = "(queued until this run ends)"

STEER, QUEUE = "steer", "queue"
"""What to do with a line during a run (`when_busy`); also the names of the commands for it."""

Line = tuple[str, str]
"""A prompt and its `when_busy`: `STEER` or `QUEUE`."""


class RunPrinter:
    """Starts and shows the runs of one chat."""

    def __init__(
        self,
        connection: Connection,
        *,
        typed: Callable[[], Sequence[Line]],
        show: Callable[[Json], None],
        say: Callable[[str], None],
    ) -> None:
        """Show the runs of sessions attached on `connection`.

        `typed` waits for the daemon or the user and returns lines for the current run. `show` prints an event, `say` a
        line of the client.
        """
        self._connection = connection
        self._typed = typed
        self._show = show
        self._say = say
        # Ids of inputs from this client that no run has taken yet.
        self._own: list[str] = []

    def prompt(self, session: str, line: str, when_busy: str | None = None) -> None:
        """Submit a prompt to an attached session and show its run."""
        self.follow(session, self._start(session, line, when_busy))

    def follow(self, session: str, run: Run) -> None:
        """Show a run to its end, then the runs of lines that were typed too late to join it."""
        try:
            went_well = self._followed(session, run)
            # Inputs that no run has taken yet start runs of their own, oldest first.
            while went_well and self._own:
                went_well = self._followed(session, Run(self._own[0], None))
            if self._own:
                self._say(HELD)
        finally:
            self._own.clear()  # after a failed run the queue is held: these inputs are not awaited any more

    def _followed(self, session: str, run: Run) -> bool:
        outcome = Outcome()

        def show(_: bytes, event: Json) -> None:
            outcome.see(event)
            if event.get("type") == "user_message" and text(event, "input") in self._own:
                self._own.remove(text(event, "input"))  # not printed: the user's typed line is on the screen already
            else:
                self._show(event)

        follow(self._connection, session, run, show, frames=self._frames(session))
        return outcome.failure is None

    def _frames(self, session: str) -> Iterator[tuple[bytes, Json]]:
        while True:
            with suppress(NoAnswerError):  # no more events for now
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
    """Return what to do with a line typed during a run; None for other commands, which wait for the prompt."""
    command = slash_lines.parsed(line)
    if command is None:
        return slash_lines.unescaped(line), STEER
    name, words = command
    return (words, name) if name in {STEER, QUEUE} else None
