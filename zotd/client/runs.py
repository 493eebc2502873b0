"""Determines which events of a session belong to one input, for typed and untyped clients.

    waiting --user_message(input)----------> running --done(run)--> over
    waiting --queue_changed without it-----> withdrawn (or its user_message comes next)
    waiting --queue_changed, held, with it-> held (a user has to continue the queue)

An input that did not start at once may wait while other runs take place; their events do not belong to it. Uses only
the standard library, for `zot -p`.
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
    """Follows one input through the events of its session, beginning with the response to `prompt` or `compact`."""

    def __init__(self, input_id: str | None, run_id: str | None, *, starts_now: bool = False) -> None:
        """The ids are from the response. With `starts_now` there is no `user_message` (a compaction)."""
        self.input_id = input_id
        self.run_id = run_id
        self.started = starts_now
        self.over = False
        self.withdrawn = False
        self.held = False
        """It is in a held queue, from which nothing starts."""
        self._left_queue = False

    def on_user_message(self, input_id: str | None, run_id: str | None) -> None:
        """Process a prompt that was added to the transcript; its ids tell whether it is ours."""
        if self.started:
            return
        if input_id == self.input_id:
            self.started = True
            self.run_id = run_id or self.run_id
        else:
            self.on_other()

    def on_done(self, run_id: str | None) -> None:
        """Process the end of a run. It is ours if the ids match, or if an id is unknown and ours is running."""
        if self.started:
            self.over = run_id is None or self.run_id is None or run_id == self.run_id
        elif run_id is not None and run_id == self.run_id:
            self.over = True  # a run that failed before its first message has no `user_message`
        else:
            self.on_other()

    def on_queue(self, waiting: Iterable[str], *, held: bool) -> None:
        """Process a change of the queue. Nothing starts from a held queue, so an input missing there was withdrawn."""
        waiting = list(waiting)
        self._left_queue = not self.started and self.input_id is not None and self.input_id not in waiting
        self.held = held and not self.started and self.input_id in waiting
        self.withdrawn = self._left_queue and held

    def check(self) -> None:
        """Raise `RunFailedError` if the input will not start without a user's action."""
        if self.withdrawn:
            raise RunFailedError(WITHDRAWN)
        if self.held:
            raise RunFailedError(HELD)

    def on_other(self) -> None:
        """Process any other committed event. In place of our `user_message`, it means that the input was withdrawn."""
        if self._left_queue and not self.started:
            self.withdrawn = True


def of_run(run: Run, session: str, frames: Iterable[tuple[bytes, Json]]) -> Iterator[tuple[bytes, Json]]:
    """Yield the lines and events of `run`, up to its `done`, from those of a `blocking.Connection`.

    After an interruption it may be called again with the same `run` to continue. Raises `RunFailedError` if the input
    was withdrawn before it started, or is held.
    """
    for line, event in frames:
        if event.get("session") != session:
            continue
        _feed(run, event)
        run.check()
        # Notices that arrive before the run starts are about it, such as which extension it waits for.
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
