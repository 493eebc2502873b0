"""Which of a session's events belong to one input: decided here for every client, typed or not.

    waiting --user_message(input)----------> running --done(run)--> over
    waiting --queue_changed without it-----> withdrawn (its user_message comes next, or never)
    waiting --queue_changed, held, with it-> held (a person has to let the queue go on)

An input that did not start at once may wait while other runs come and go; their events are not its own. The standard
library only: `zot -p` uses it.
"""

from collections.abc import Iterable, Iterator

from zotd.client.blocking import Json
from zotd.client.errors import RunFailedError
from zotd.client.fields import children, maybe_text, text

WITHDRAWN = "the input was withdrawn from the session's queue before it started"

HELD = (
    "the previous run failed or was stopped, so the prompt is held in the session's queue; "
    "`zotctl continue` or another prompt starts it"
)


class Run:
    """Follows one input through the events of its session, from the answer to `prompt` or `compact` on."""

    def __init__(self, input_id: str | None, run_id: str | None, *, starts_now: bool = False) -> None:
        """`input_id`, `run_id`: of the answer. `starts_now`: there will be no `user_message` (a compaction)."""
        self.input_id = input_id
        self.run_id = run_id
        self.started = starts_now
        self.over = False
        self.withdrawn = False
        self.held = False
        """It waits in a queue out of which nothing starts."""
        self._left_queue = False

    def on_user_message(self, input_id: str | None, run_id: str | None) -> None:
        """A prompt entered the transcript; ours, when the ids say so."""
        if self.started:
            return
        if input_id == self.input_id:
            self.started = True
            self.run_id = run_id or self.run_id
        else:
            self.on_other()

    def on_done(self, run_id: str | None) -> None:
        """A run is over; ours, when it has our id, or when ids are unknown and ours is running."""
        if self.started:
            self.over = run_id is None or self.run_id is None or run_id == self.run_id
        elif run_id is not None and run_id == self.run_id:
            self.over = True  # a run that failed before its first message shows none
        else:
            self.on_other()

    def on_queue(self, waiting: Iterable[str], *, held: bool) -> None:
        """The queue has changed. Out of a held queue nothing starts: what is missing there was withdrawn."""
        waiting = list(waiting)
        self._left_queue = not self.started and self.input_id is not None and self.input_id not in waiting
        self.held = held and not self.started and self.input_id in waiting
        self.withdrawn = self._left_queue and held

    def check(self) -> None:
        """Raise `RunFailedError` when the input does not start by itself any more."""
        if self.withdrawn:
            raise RunFailedError(WITHDRAWN)
        if self.held:
            raise RunFailedError(HELD)

    def on_other(self) -> None:
        """Any other committed event; one that comes where our `user_message` should tells that we were withdrawn."""
        if self._left_queue and not self.started:
            self.withdrawn = True


def of_run(run: Run, session: str, frames: Iterable[tuple[bytes, Json]]) -> Iterator[tuple[bytes, Json]]:
    """The lines and events of `run`, up to its `done`, out of what a `blocking.Connection` gives.

    When it is interrupted it may be called again with the same `run`, and goes on. Raises `RunFailedError` when
    the input was withdrawn before it started, or is held.
    """
    for line, event in frames:
        if event.get("session") != session:
            continue
        _feed(run, event)
        run.check()
        # A notice that comes while our run is being prepared is about it: which extension it waits for, for example.
        if run.started or run.over or (run.run_id is not None and event.get("type") == "notice"):
            yield line, event
        if run.over:
            return


def _feed(run: Run, event: Json) -> None:
    match event.get("type"):
        case "done":
            run.on_done(maybe_text(event, "run"))
        case "user_message":
            run.on_user_message(maybe_text(event, "input"), maybe_text(event, "run"))
        case "queue_changed":
            run.on_queue([text(item, "id") for item in children(event, "items")], held=event.get("held") is True)
        case _ if "seq" in event:
            run.on_other()
        case _:
            pass
