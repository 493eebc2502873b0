"""Selects the typed events of one run from a session's batches; for the asyncio client and the blocking one."""

from zotd.client.errors import RunFailedError
from zotd.client.runs import Run
from zotd.wire.api import Started
from zotd.wire.events import AnyEvent, CompactDone, Done, Error, QueueChanged, UserMessage


def run_of(started: Started) -> Run:
    """Return the run that the response to `prompt` describes."""
    return Run(started.input, started.run)


def select(run: Run, batch: list[AnyEvent]) -> list[AnyEvent]:
    """Return the events of `batch` that belong to `run`, up to its `done`, after which `run.over` is True.

    Raises `RunFailedError` if the input was withdrawn before it started, or is held.
    """
    if run.started:
        return _until_done(run, batch)
    for index, event in enumerate(batch):
        if _begins(run, event):
            return _until_done(run, batch[index:])
        run.check()
    return []


def summary_of(compaction: list[AnyEvent]) -> str:
    """Return the summary from the events of a compaction; raises `RunFailedError` if there is none."""
    for event in compaction:
        if isinstance(event, CompactDone):
            return event.summary
        if isinstance(event, Error):
            raise RunFailedError(event.message)
    raise RunFailedError("the compaction was aborted")


def _until_done(run: Run, batch: list[AnyEvent]) -> list[AnyEvent]:
    for index, event in enumerate(batch):
        if type(event) is Done:
            run.on_done(event.run)
            if run.over:
                return batch[: index + 1]
    return batch


def _begins(run: Run, event: AnyEvent) -> bool:
    """Whether `event` is the first one of the run, or its `done` if the run has no other events."""
    if isinstance(event, UserMessage):
        run.on_user_message(event.input, event.run)
    elif isinstance(event, Done):
        run.on_done(event.run)
    elif isinstance(event, QueueChanged):
        run.on_queue([item.id for item in event.items], held=event.held)
    elif event.seq is not None:
        run.on_other()
    return run.started or run.over
