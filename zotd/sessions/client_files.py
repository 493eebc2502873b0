"""Asks the client that is an editor about files of a session. Satisfies `core.editor_files.EditorFiles`.

    tool ──> file_request ──> the client that has offered its files last ──> files.answer ──> tool

A client that leaves, or does not answer in time, has no files any more; then the disk counts.
"""

import asyncio
import hashlib
from collections.abc import Callable

from msgspec import Struct

from zotd import ids
from zotd.wire import events
from zotd.wire.api import FileAnswer
from zotd.wire.errors import Code, CommandError

READ_S = 5.0
"""Longest wait for a text that an editor has in memory."""

WRITE_S = 20.0
"""Longest wait for an editor that saves a file, which may run a formatter."""


MAX_KNOWN = 1_000
"""Files of which is known what the editor and the disk both had; more are not worked on at a time."""


class EditorOffer(Struct, frozen=True):
    """What one client has offered."""

    send: Callable[[events.FileRequest], None]
    reads: bool
    writes: bool


class ClientFiles:
    """The editors of one session."""

    def __init__(self, label: str | None, warn: Callable[[str], None]) -> None:
        """`label`: the session in events. `warn` tells the people of the session a sentence."""
        self._label = label
        self._warn = warn
        self.offers: dict[str, EditorOffer] = {}
        """By client, the newest last; empty: there is no editor. Read by others, changed here only."""
        self._open: dict[str, tuple[str, asyncio.Future[FileAnswer | None]]] = {}
        """The client that was asked, and its answer, by request."""
        self._known: dict[str, bytes] = {}
        """Digests of texts that the editor and the disk both had, by path, the oldest first."""

    def offer(
        self, client: str, send: Callable[[events.FileRequest], None], *, reads: bool = True, writes: bool = True
    ) -> None:
        """Ask this client from now on. `withdraw` has to be called when it is gone."""
        self.offers.pop(client, None)
        self.offers[client] = EditorOffer(send, reads, writes)

    def withdraw(self, client: str) -> None:
        """Ask this client no more; what it was asked is answered by the disk."""
        self.offers.pop(client, None)
        for asked, answer in self._open.values():
            if asked == client and not answer.done():
                answer.set_result(None)

    def answer(self, client: str, given: FileAnswer) -> None:
        """Take an answer. Raises CommandError if the client was not asked, or is too late."""
        asked, answer = self._open.get(given.request, ("", None))
        if asked != client or answer is None or answer.done():
            raise CommandError(Code.NOT_FOUND, f"there is no open request {given.request[:80]} for this client")
        answer.set_result(given)

    # --- core.editor_files.EditorFiles ----------------------------------------------------------------------------

    async def read(self, path: str) -> str | None:
        """Return the text of a file in the editor; None: it has none, or does not say."""
        client = next((client for client, one in reversed(self.offers.items()) if one.reads), None)
        answer = None if client is None else await self._ask(client, "read", path, within_s=READ_S)
        return None if answer is None else answer.content

    async def write(self, path: str, text: str) -> bool:
        """Have the editor write a file; return whether it says that it has."""
        client = next((client for client, one in reversed(self.offers.items()) if one.writes), None)
        answer = None if client is None else await self._ask(client, "write", path, content=text, within_s=WRITE_S)
        return answer is not None and answer.error is None

    def agreed(self, path: str, text: str) -> None:
        """Remember that the editor and the disk both have this text."""
        self._known.pop(path, None)
        self._known[path] = _digest(text)
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]

    def has_agreed(self, path: str, text: str) -> bool:
        """Return whether this is the text that both had last."""
        return self._known.get(path) == _digest(text)

    async def _ask(
        self, client: str, action: str, path: str, *, content: str | None = None, within_s: float
    ) -> FileAnswer | None:
        request = ids.new("f")
        answer: asyncio.Future[FileAnswer | None] = asyncio.get_running_loop().create_future()
        self._open[request] = client, answer
        try:
            self.offers[client].send(events.FileRequest(request, action, path, content, session=self._label))
            async with asyncio.timeout(within_s):
                return await answer
        except TimeoutError:
            self.offers.pop(client, None)
            words = f"the editor did not {action} {path} within {within_s:g} s"
            self._warn(f"{words}; files are used as they are on the disk until it opens the session again")
            return None
        finally:
            del self._open[request]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
