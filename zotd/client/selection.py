"""The typed events of one run, out of a session's batches; shared by the asyncio and the blocking client."""

from zotd.client.errors import RunFailedError
from zotd.client.runs import Run
from zotd.wire.api import Started
from zotd.wire.events import AnyEvent, CompactDone, Done, Error, QueueChanged, UserMessage


def run_of(started: Started) -> Run:
    """The run that the answer to `prompt` tells of."""
    return Run(started.input, started.run)


def select(run: Run, batch: list[AnyEvent]) -> list[AnyEvent]:
    """Those events of `batch` that belong to `run`, up to its `done`; `run.over` says whether that has come.

    Raises `RunFailedError` when the input was withdrawn before it started, or is held.
    """
    if run.started:
        return _until_done(run, batch)
    for index, event in enumerate(batch):
        if _begins(run, event):
            return _until_done(run, batch[index:])
        run.check()
    return []


def summary_of(compaction: list[AnyEvent]) -> str:
    """The summary in the events of a compaction; raises `RunFailedError` when there is none."""
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
    """`event` is the first one of the run, or its `done` when there is no other."""
    if isinstance(event, UserMessage):
        run.on_user_message(event.input, event.run)
    elif isinstance(event, Done):
        run.on_done(event.run)
    elif isinstance(event, QueueChanged):
        run.on_queue([item.id for item in event.items], held=event.held)
    elif event.seq is not None:
        run.on_other()
    return run.started or run.over
