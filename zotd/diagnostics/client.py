"""What zot says to a language server, and what it makes of the answers.

    initialize ──> (text before the edit ──> its errors, once) ──> text after it ──> its errors ──> those of other files

Errors count for one text only. They are asked for with a request after the text was sent, where the server can do that; else
those are taken that carry the version of the text.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from zotd.diagnostics import messages, tsserver
from zotd.diagnostics.catalog import ServerRow
from zotd.diagnostics.connection import RpcConnection, ServerGoneError, ServerRefusedError, ServerSilentError
from zotd.diagnostics.error_book import ErrorBook, FoundError, one_line
from zotd.diagnostics.messages import Diagnostic, WatchedChange
from zotd.diagnostics.open_files import OpenFiles
from zotd.wire.base import Frozen, decode
from zotd.wire.jsonrpc import Notification, RpcRequest

INITIALIZE_S = 30.0
"""Longest wait for the answer to `initialize`; Node with a cold cache takes 2 s."""

ANSWER_S = 30.0
"""Longest wait for the errors of a file. A server that takes longer counts as hung."""

PUBLISH_S = 10.0
"""Longest wait for the errors of a file from a server that cannot be asked."""

OTHERS_S = 0.25
"""Longest wait for the errors of other files, when those of the edited file are known."""

OTHERS = 8
"""Other files whose errors are asked for, those that were edited last."""

SETTLE_S = 0.2
"""Silence after which errors count that a server sends without a version: it may send several lists, the last one whole."""

RETRIES = 3
"""How often errors are asked for again because the server says that something has changed meanwhile."""

ACKNOWLEDGED = frozenset(
    {
        "client/unregisterCapability",
        "window/workDoneProgress/create",
        "window/showMessageRequest",
        "workspace/diagnostic/refresh",
        "workspace/codeLens/refresh",
        "workspace/inlayHint/refresh",
        "workspace/semanticTokens/refresh",
    }
)
"""Requests of servers that are answered with null, because nothing follows from them here."""

SHUTDOWN_S = 1.0
"""Longest wait for the answer to `shutdown`."""


class LanguageClient:
    """One running server, from `initialize` on."""

    def __init__(self, row: ServerRow, root: str, book: ErrorBook) -> None:
        self.files = OpenFiles()
        """What it has open."""
        self.connection = RpcConnection(self._answer, self._hear, self._lost)
        self._row, self._root, self._book = row, root, book
        self._settings: Mapping[str, object] = row.settings
        self._can_be_asked = self._sees_other_files = row.asks_tsserver
        self._wants_saves = False
        self._published: dict[str, asyncio.Future[None]] = {}
        """By path: who waits for the errors of the version that is open."""
        self._settling: asyncio.TimerHandle | None = None

    async def initialize(self, settings: Mapping[str, object]) -> None:
        """Begin the conversation. Raises ServerGoneError, ServerRefusedError."""
        self._settings = settings
        uri = uri_of(self._root)
        params = messages.InitializeParams(
            process_id=None,  # a server that looks for its parent does not see it from its jail, and would leave
            root_path=self._root,
            root_uri=uri,
            workspace_folders=[messages.WorkspaceFolder(uri, Path(self._root).name)],
            capabilities=messages.CAPABILITIES,
            initialization_options=self._row.options,
        )
        found = await self.connection.ask("initialize", params, messages.InitializeResult, within_s=INITIALIZE_S)
        self._use_provider(found.capabilities.diagnostic_provider)
        sync = found.capabilities.text_document_sync
        self._wants_saves = isinstance(sync, dict) and bool(sync.get("save"))
        self.connection.tell("initialized", messages.NoParams())

    async def leave(self) -> None:
        """End the server in an orderly way."""
        if not self.connection.gone.is_set():
            with suppress(ServerGoneError, ServerRefusedError):
                await self.connection.ask("shutdown", messages.NoParams(), Frozen, within_s=SHUTDOWN_S)
        await self.connection.leave()

    # --- what the server knows ----------------------------------------------------------------------------------

    def configure(self, settings: Mapping[str, object]) -> None:
        """Have the server ask for its configuration again."""
        self._settings = settings
        self.connection.tell("workspace/didChangeConfiguration", messages.ConfigurationChanged(settings))

    def disk_changed(self, changes: Sequence[tuple[str, WatchedChange]]) -> None:
        """Tell the server what has changed on the disk."""
        if changes:
            events = [messages.FileEvent(uri_of(path), int(kind)) for path, kind in changes]
            self.connection.tell("workspace/didChangeWatchedFiles", messages.WatchedFilesChanged(events))

    def show(self, path: str, language: str, text: str) -> None:
        """Have the server take this text for the content of the file."""
        known = self.files.get(path)
        if known is not None and known.text == text:
            return
        self._book.changed(path)
        now = self.files.put(path, language, text)
        uri = uri_of(path)
        self._published[path] = asyncio.get_running_loop().create_future()
        if known is None:
            item = messages.DocumentItem(uri, language, now.version, text)
            self.connection.tell("textDocument/didOpen", messages.DidOpen(item))
        else:
            document = messages.VersionedDocument(uri, now.version)
            change = messages.DidChange(document, [messages.WholeText(text)])
            self.connection.tell("textDocument/didChange", change)
        for surplus in self.files.surplus():
            self.close(surplus.path)

    def saved(self, path: str) -> None:
        """Tell the server that what it has of the file is on the disk."""
        if self._wants_saves:
            self.connection.tell("textDocument/didSave", messages.OfDocument(messages.DocumentName(uri_of(path))))

    def close(self, path: str) -> None:
        """Have the server go by what is on the disk; it tells no more errors of the file."""
        if self.files.get(path) is None:
            return
        self.files.drop(path)
        self._published.pop(path, None)
        self._book.forget(path)
        self.connection.tell("textDocument/didClose", messages.OfDocument(messages.DocumentName(uri_of(path))))

    # --- errors -------------------------------------------------------------------------------------------------

    async def find_errors(self, path: str) -> None:
        """Wait until the book has the errors of the file as the server has it.

        Raises:
            ServerGoneError: it has ended, or does not answer; then it is ended.
            ServerRefusedError: it does not know.
            ServerSilentError: it cannot be asked, and has said nothing.
        """
        if not self._can_be_asked:
            await self._hear_errors(path)
        if self._can_be_asked:  # it may have said so meanwhile
            await self._ask_errors(path)

    async def _hear_errors(self, path: str) -> None:
        """Wait for the errors that the server publishes, or until it can be asked."""
        if self.connection.gone.is_set():
            raise ServerGoneError(self.connection.reason)
        try:
            async with asyncio.timeout(PUBLISH_S):
                await self._published[path]
        except TimeoutError:
            raise ServerSilentError(f"has told nothing about {path} within {PUBLISH_S:g} s") from None

    async def find_other_errors(self, path: str) -> None:
        """Ask for the errors of other files that are open, for a short time: an edit may have caused some there."""
        if not (self._can_be_asked and self._sees_other_files):
            return
        others = [file.path for file in self.files.files if file.path != path]
        for other in others:
            self._book.changed(other)  # what was said before the edit may be wrong now
        with suppress(TimeoutError):
            async with asyncio.timeout(OTHERS_S), asyncio.TaskGroup() as tasks:
                for other in others[:OTHERS]:
                    tasks.create_task(self._try_errors(other), name=f"errors of {other}")

    async def _try_errors(self, path: str) -> None:
        with suppress(ServerGoneError, ServerRefusedError):
            await self._ask_errors(path)

    async def _ask_errors(self, path: str) -> None:
        if self._row.asks_tsserver:
            self._book.answered(path, await tsserver.ask_errors(self.connection, path, within_s=ANSWER_S))
            return
        params = messages.OfDocument(messages.DocumentName(uri_of(path)))
        for attempt in range(RETRIES + 1):
            try:
                report = await self.connection.ask(
                    "textDocument/diagnostic", params, messages.DiagnosticReport, within_s=ANSWER_S
                )
            except ServerRefusedError as error:
                if attempt == RETRIES or error.code not in set(messages.LspErrorCode):
                    raise
            else:
                self._book.answered(path, self._errors(path, report.items))
                return

    def _errors(self, path: str, found: Iterable[Diagnostic]) -> list[FoundError]:
        return [_error(path, one, self._row.name) for one in found if one.severity in {None, messages.ERROR}]

    # --- what the server says by itself -------------------------------------------------------------------------

    def _hear(self, said: Notification) -> None:
        if said.method == "textDocument/publishDiagnostics" and not self._row.asks_tsserver:
            self._take(decode(said.params, messages.PublishDiagnostics))

    def _take(self, found: messages.PublishDiagnostics) -> None:
        path = path_of(found.uri)
        file = None if path is None else self.files.get(path)
        if path is None or (found.version is not None and (file is None or file.version != found.version)):
            return  # of another text
        self._book.published(path, self._errors(path, found.diagnostics))
        waiting = self._published.get(path)
        if waiting is None or waiting.done():
            return
        if found.version is not None:
            waiting.set_result(None)
            return
        if self._settling is not None:
            self._settling.cancel()
        self._settling = asyncio.get_running_loop().call_later(SETTLE_S, _settle, waiting)

    def _lost(self, reason: str) -> None:
        for waiting in self._published.values():
            if not waiting.done():
                waiting.set_exception(ServerGoneError(reason))
                waiting.exception()  # nobody may be waiting, and then nobody has to know

    def _answer(self, asked: RpcRequest) -> object:
        match asked.method:
            case "workspace/configuration":
                wanted = decode(asked.params, messages.ConfigurationParams).items
                return [section_of(self._settings, item.section) for item in wanted]
            case "client/registerCapability":
                for one in decode(asked.params, messages.CapabilityRegistrations).registrations:
                    if one.method == "textDocument/diagnostic":
                        self._use_provider(one.register_options or {})
                return None
            case "workspace/workspaceFolders":
                return [messages.WorkspaceFolder(uri_of(self._root), Path(self._root).name)]
            case "workspace/applyEdit":
                return {"applied": False}
            case "window/showDocument":
                return {"success": False}
            case _ if asked.method in ACKNOWLEDGED:
                return None
            case _:
                raise KeyError(asked.method)

    def _use_provider(self, provider: object) -> None:
        if provider is None or provider is False:
            return
        self._can_be_asked = True
        for waiting in self._published.values():
            _settle(waiting)
        self._sees_other_files = isinstance(provider, dict) and bool(provider.get("interFileDependencies"))


def uri_of(path: str) -> str:
    """Return the URI of a file."""
    return Path(path).as_uri()


def path_of(uri: str) -> str | None:
    """Return the path of a `file:` URI, in which servers escape different characters; None: it is another one."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    return unquote(parts.path, errors="surrogateescape") if parts.scheme == "file" and not parts.netloc else None


def section_of(settings: Mapping[str, object], name: str) -> object:
    """Return a section such as `python.analysis` of a tree of settings; None: it has none."""
    found: object = settings
    for part in name.split(".") if name else ():
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _error(path: str, found: Diagnostic, server: str) -> FoundError:
    message = found.message if isinstance(found.message, str) else found.message.value
    words = [(found.source or server).lower(), "" if found.code is None else str(found.code)]
    return FoundError(
        path,
        found.range.start.line + 1,
        found.range.start.character + 1,
        one_line(message),
        one_line(" ".join(words)),
    )


def _settle(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
