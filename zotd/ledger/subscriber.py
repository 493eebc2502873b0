"""The receivers of a session's events."""

from collections.abc import Sequence
from typing import Protocol

from zotd.wire import events


class Subscriber(Protocol):
    """A follower of a session. The methods return at once and never raise."""

    def committed(self, shown: Sequence[events.Event], data: bytes, last_seq: int) -> None:
        """Events with `seq`, and the same as NDJSON."""
        ...

    def early(self, shown: events.Event, data: bytes, seq: int) -> bool:
        """An event with `seq` that will be committed. Returns whether it was taken; if not, `committed` gets it."""
        ...

    def live(self, shown: Sequence[events.Event], data: bytes) -> None:
        """Events without `seq`; may be merged."""
        ...
