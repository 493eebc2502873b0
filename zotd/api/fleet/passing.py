"""What is passed on between a client and the daemon that has its session."""

from typing import Protocol

import msgspec
from msgspec import UNSET, Raw, UnsetType

from zotd.wire import api
from zotd.wire.base import Frozen, encode


class RelayError(Exception):
    """Another daemon cannot be used, and nothing was sent to it; the message says why."""

    def __init__(self, sentence: str, *, is_lasting: bool = False) -> None:
        """`is_lasting`: a person has to change something; waiting is no use."""
        super().__init__(sentence)
        self.is_lasting = is_lasting


class PassedClient(Protocol):
    """A client whose frames are passed on."""

    id: str
    client: api.Client
    role: api.Role
    can_decide: bool

    def write(self, data: bytes) -> None:
        """Send lines to the client."""
        ...

    async def room(self) -> None:
        """Wait until the client has read what was sent."""
        ...

    def end(self) -> None:
        """Disconnect the client after its output is sent."""
        ...


class PassedAnswer(Frozen, tag_field="type", tag="response", frozen=True):
    """A response of the other daemon (`wire.api.Response`), of which `data` is passed on as it is."""

    command: str
    success: bool
    id: str | int | None = None
    data: Raw | UnsetType = UNSET
    error: str | UnsetType = UNSET
    code: str | UnsetType = UNSET


def passed(answer: PassedAnswer, request_id: str | int | None) -> bytes:
    """Return the line of a response to the request of the client."""
    return encode(msgspec.structs.replace(answer, id=request_id)) + b"\n"
