"""Passes requests of the daemon about files to the editor: it shows unsaved changes, and writes what tools change."""

import logging
from dataclasses import dataclass

from zotd.bridges.acp.editor import Editor
from zotd.client.client import Client
from zotd.client.errors import ClientError
from zotd.wire import api
from zotd.wire.acp import Empty, FileSystem, ReadFile, ReadTextFile, WriteTextFile
from zotd.wire.base import BadFrameError
from zotd.wire.events import FileRequest

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileRequests:
    """The file system of one editor, for one session."""

    session: str
    editor: Editor
    offered: FileSystem
    """What the editor can do."""
    places: tuple[str, str]
    """The session's working directory as the daemon and as the editor call it."""

    async def offer(self, client: Client) -> None:
        """Have the daemon ask this editor as long as the connection of `client` lasts."""
        reads, writes = self.offered.read_text_file, self.offered.write_text_file
        if not (reads or writes):
            return
        offer = api.FilesOffer(session=self.session, read=reads, write=writes)
        try:
            await client.ask(offer, api.Nothing)
        except ClientError as error:  # an older daemon, or a lost connection: then tools use the disk
            log.warning("files are not read through the editor: %s", error)

    async def serve(self, request: FileRequest, client: Client) -> None:
        """Answer a request of the daemon with what the editor says."""
        try:
            content = await self._ask(request)
            answer = api.FileAnswer(session=self.session, request=request.id, content=content)
        except BadFrameError as error:
            answer = api.FileAnswer(session=self.session, request=request.id, error=str(error))
        try:
            await client.ask(answer, api.Nothing)
        except ClientError as error:  # it was too late, or the connection is lost
            log.info("the answer about %s was not taken: %s", request.path, error)

    async def _ask(self, request: FileRequest) -> str | None:
        path = self._path(request.path)
        if request.content is None:
            wanted = ReadTextFile(self.session, path)
            return (await self.editor.ask("fs/read_text_file", wanted, ReadFile)).content
        await self.editor.ask("fs/write_text_file", WriteTextFile(self.session, path, request.content), Empty)
        return None

    def _path(self, path: str) -> str:
        """Return a path as the editor knows it: it may have opened the directory through a link."""
        ours, theirs = self.places[0], self.places[1].rstrip("/")
        return theirs + path[len(ours) :] if path == ours or path.startswith(f"{ours}/") else path
