"""A queue of inotify events that an event loop reads, opened with its first use."""

import asyncio
import logging
import sys
from collections.abc import Callable

from zotd.inotify import Inotify

log = logging.getLogger(__name__)


class DirectoryEvents:
    """Events in the directories that its owner adds to the queue. Linux only; belongs to one event loop."""

    def __init__(self, arrived: Callable[[Inotify], None], without: str) -> None:
        """Open nothing yet.

        Args:
            arrived: called when events are in the queue, which it reads.
            without: what holds if there can be no queue, as the beginning of a log line.
        """
        self._arrived = arrived
        self._without = without
        self._is_closed = False
        self._queue: Inotify | None = None

    @property
    def queue(self) -> Inotify | None:
        """The queue; None: it was not opened, or is closed."""
        return self._queue

    def opened(self) -> Inotify | None:
        """Return the queue; None if there can be none."""
        if sys.platform != "linux" or self._is_closed:
            return None
        if self._queue is None:
            try:
                self._queue = Inotify()
            except OSError as error:
                log.warning("%s: %s", self._without, error.strerror)
                return None
            asyncio.get_running_loop().add_reader(self._queue, self._arrived, self._queue)
        return self._queue

    def close(self) -> None:
        """Close the queue for good."""
        self._is_closed = True
        if self._queue is not None:
            asyncio.get_running_loop().remove_reader(self._queue)
            self._queue.close_soon()
            self._queue = None
