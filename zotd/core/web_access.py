"""The network as a built-in tool uses it that needs no jail."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct

from zotd.core.budget import Rates
from zotd.wire.content import Tokens

SEARCH_KEYS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "brave": "BRAVE_API_KEY",
    "openai": "OPENAI_API_KEY",
    "tavily": "TAVILY_API_KEY",
}
"""The environment variables with the keys of search engines."""


class SearchEngine(Struct, frozen=True):
    """What the user has chosen for searches of the web."""

    name: str
    url: str
    """Where it is, if not at its own address; empty: there."""
    key: str
    """Empty: there is none."""
    model: str = ""
    """What searches, if it is a vendor's model that does."""
    rates: Rates | None = None
    """Prices of that model; None: unknown."""
    price: Callable[[Tokens], Tokens] = lambda tokens: tokens
    """Returns tokens of that model with their cost, which is 0 if its price is unknown."""


class SearchFigures(Struct, frozen=True):
    """What a vendor says that a search by its model took."""

    tokens: Tokens
    searches: int
    """How often the model has searched; each is charged beside the tokens."""


class SearchBill(Protocol):
    """Pays for one search by a vendor's model."""

    def took(self, figures: SearchFigures) -> None:
        """Charge this; without it, what was estimated is charged when the bill is left."""
        ...

    def free(self) -> None:
        """Charge nothing: the vendor has refused the request, or was not reached."""
        ...


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
