"""Slash commands that are Markdown files: which a session has, and what running one does.

file  ->  fields and text  ->  text with the arguments  ->  a prompt, and calls of `bash` that its run begins with
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from zotd.config.current import CurrentConfig
from zotd.core import command_text, records
from zotd.core.command_text import CommandTextError, ExpandedCommand
from zotd.core.permissions import SHELL
from zotd.runs.queue import SubmitRequest
from zotd.sanitize import escaped
from zotd.sessions.session import Session
from zotd.wire import events
from zotd.wire.api import Started
from zotd.wire.errors import Code, CommandError
from zotd.wire.extensions import Finding
from zotd.workspace import command_files
from zotd.workspace.command_files import FileCommand
from zotd.workspace.context import ContextPaths
from zotd.workspace.markdown_files import FilePlace, MarkdownFileError, places_of

READ_S = 5.0
"""Longest wait for files of commands; local ones take a millisecond, a dead network mount for ever."""

MAX_SAID = 1_000
"""Remarks about files that are remembered, so that each is told once."""


class PathSource(Protocol):
    """Knows where the surroundings of sessions are."""

    async def paths(self, session: Session, *, anew: bool = False) -> ContextPaths:
        """Return them as the session's workspace is trusted; `anew`: look at its code now."""
        ...


class FileCommands:
    """The commands of all sessions that are files. They are read when they are used or listed."""

    def __init__(self, source: PathSource, config: CurrentConfig) -> None:
        self._source = source
        self._config = config
        self._said: deque[str] = deque(maxlen=MAX_SAID)

    async def listed(self, session: Session) -> Sequence[FileCommand]:
        """Return those that can be used, by name; none when the disk does not answer."""
        places = self._places(await self._source.paths(session))
        try:
            async with asyncio.timeout(READ_S):
                found = await asyncio.to_thread(command_files.find_commands, places)
        except TimeoutError:
            return ()
        return [found.commands[name] for name in sorted(found.commands)]

    async def findings(self, paths: ContextPaths, owner: Callable[[str], str]) -> list[Finding]:
        """Return why files of commands are not used. `owner`: whose command has a name, empty if no other has it."""
        try:
            async with asyncio.timeout(READ_S):
                found = await asyncio.to_thread(command_files.find_commands, self._places(paths))
        except TimeoutError:
            return []
        hidden = {
            one.path: f"{one.path} is hidden by /{one.name} of {owner(one.name)}"
            for one in found.commands.values()
            if owner(one.name)
        }
        remarks = [remark for one in found.commands.values() for remark in one.remarks]
        cwd = os.fspath(paths.cwd)
        failing = [Finding("", text, cwd) for text in (found.problems | hidden).values()]
        return [*failing, *(Finding("", text, cwd, "doubtful") for text in remarks)]

    async def find(self, session: Session, name: str) -> FileCommand | None:
        """Return the one with this name, as its file says now; None: there is none.

        Raises:
            CommandError: its file cannot be used, or its directory is not trusted.
        """
        try:
            found = await self._read_in_time(await self._source.paths(session), name)
            if found is not None and found.is_project_s and command_text.SHELL_RUN.search(found.text):
                # What is run has to be what was trusted, and the report of a change takes a moment. Not before the file is
                # read: it could change between the two.
                paths = await self._source.paths(session, anew=True)
                return found if paths.trusted else await self._read_in_time(paths, name)
            return found
        except MarkdownFileError as error:
            raise CommandError(Code.BAD_REQUEST, f"/{name} cannot be run: {error}") from error
        except TimeoutError as error:
            raise CommandError(Code.TIMEOUT, f"the files of commands could not be read within {READ_S:g} s") from error

    async def run(
        self,
        session: Session,
        command: FileCommand,
        args: str,
        *,
        sender: str,
        accepted: Callable[[Started], None],
        request: SubmitRequest,
    ) -> None:
        """Send the command's text as a prompt, in the queue if something runs. `accepted` is called when it is on record.

        `request`: what the sender wants of the run; which tools it may use is the file's.

        Raises:
            CommandError: it cannot be run with these arguments, or the session takes no prompt.
        """
        try:
            sent = command_text.expanded(command.text, args)
        except CommandTextError as error:
            raise CommandError(Code.BAD_REQUEST, f"/{command.name} {error}") from error
        allowed = None
        if command.allowed_tools is not None:
            allowed = records.AllowedTools(command.name, list(command.allowed_tools))

        def told(started: Started) -> None:
            accepted(started)
            self._remark(session, command)

        await session.load()
        await session.prompt(
            sent.prompt,
            [],
            sender=sender,
            when_busy="queue",
            accepted=told,
            request=replace(request, allowed_tools=allowed),
            opening=_opening(sent),
        )

    async def _read_in_time(self, paths: ContextPaths, name: str) -> FileCommand | None:
        async with asyncio.timeout(READ_S):
            return await asyncio.to_thread(self._read, paths, name)

    def _places(self, paths: ContextPaths) -> list[FilePlace]:
        return places_of(paths, command_files.COMMANDS, claude=self._config.value.ext.claude_commands)

    def _read(self, paths: ContextPaths, name: str) -> FileCommand | None:
        found = command_files.read_command(self._places(paths), name)
        if found is None and not paths.trusted:
            hidden = command_files.path_of(self._places(replace(paths, trusted=True)), name)
            if hidden is not None:
                cwd = escaped(os.fspath(paths.cwd))
                raise MarkdownFileError(
                    f"{hidden} is not trusted as it is now; look at it, then: zotctl trust grant {cwd}"
                )
        return found

    def _remark(self, session: Session, command: FileCommand) -> None:
        for remark in command.remarks:
            if remark not in self._said:
                self._said.append(remark)
                session.ledger.live([events.Notice("warn", remark, session=session.ledger.label)])


def _opening(sent: ExpandedCommand) -> records.Opening | None:
    """The session's own `bash` runs the commands of the text, so that its permissions decide about each of them."""
    if not sent.shell:
        return None
    first, *more = [{"command": command} for command in sent.shell]
    return records.Opening(SHELL, dict(first), [dict(args) for args in more])
