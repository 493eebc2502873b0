"""The network as a built-in tool uses it that needs no jail."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class WebConnection(Protocol):
    """A host that a call may reach."""

    @property
    def addresses(self) -> Sequence[str]:
        """Where the host is; nothing else may be connected to."""
        ...

    received: int
    """Bytes from the host so far, for the log of the network; the caller counts them."""


class WebAccess(Protocol):
    """The network as one call may use it."""

    def connection(self, host: str, port: int) -> AbstractAsyncContextManager[WebConnection]:
        """Enter when the host may be reached, which a person may have to decide. The block is the connection in the log.

        Raises what the proxy raises: the host is malformed, is refused, or has no address.
        """
        ...
