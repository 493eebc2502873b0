"""Completes what a user has begun to type: a file, a slash command, a model."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Container, Coroutine, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from zotd.core.matching import ranked
from zotd.sanitize import blanked
from zotd.sessions.file_commands import FileCommands
from zotd.sessions.models import ModelChooser
from zotd.sessions.other_agents import OtherAgents
from zotd.sessions.session import Session
from zotd.sessions.slash_commands import OF_OWN_RUNS, SKILL, builtins, is_reserved
from zotd.tools.skill import Skill
from zotd.wire.api import Completion, Completions, ModelInfo
from zotd.wire.errors import Code, CommandError
from zotd.workspace.file_index import MAX_ITEMS, Files
from zotd.workspace.file_listing import is_typed

MAX_TYPED = 256
"""Characters. Users type less of a name, and each character costs a pass over every file."""

MAX_PATH = 4096
"""The same, of a path that leads outside: the system takes no longer one."""

LOOK_S = 2.0
"""How long a directory outside of the workspace may take to be listed; a network mount that is gone takes for ever."""

MAX_LOOKS = 2
"""Directories outside of workspaces that are listed at once: those that hang must not take all threads."""

MAX_ENTRIES = 10_000
"""Most entries of such a directory that are read."""

MAX_NAMES = 200
"""Commands or models in one answer: a list of all is shown when nothing is typed yet."""

MAX_BEGUN = 20
"""Most mentions that stand before files, because they begin as what is typed."""

DETAIL_CHARS = 200
"""Longest description of an extension's command: one line."""

OUTSIDE = ("/", "~/", "../")
"""How a path begins that is looked for in the file system."""


class Completer:
    """Completes for the clients of all sessions."""

    def __init__(
        self,
        *,
        models: ModelChooser,
        skills: Callable[[Session], Awaitable[Sequence[Skill]]],
        file_commands: FileCommands,
        agents: OtherAgents,
        spawn: Callable[[str, Coroutine[object, object, None]], None],
    ) -> None:
        """`skills`: those of a session. `agents`: those of others, with their commands. `spawn` starts a named task that outlives its caller."""
        self._files = Files(spawn)
        self._models = models
        self._skills = skills
        self._file_commands = file_commands
        self._agents = agents
        self._looks: set[asyncio.Future[list[str]]] = set()
        """Completions in progress, including those whose client has left."""

    async def complete(self, session: Session, kind: str, typed: str, *, may_leave: bool) -> Completions:
        """The best of what fits. `may_leave`: also files outside of the session's workspace.

        Takes `files.FIRST_S` at most, or what reading skills takes. Raises CommandError for an unknown kind.
        """
        if len(typed) > (MAX_TYPED if kind != "file" or not typed.startswith(OUTSIDE) else MAX_PATH):
            return Completions([])
        match kind:
            case "file":
                return await self._file(session, typed, may_leave=may_leave)
            case "command":
                return await self._command(session, typed.removeprefix("/"))
            case "model":
                return await self._model(session, typed)
            case _:
                raise CommandError(
                    Code.BAD_REQUEST, f'there is no completion for "{kind[:80]}"; use file, command or model'
                )

    # --- files ------------------------------------------------------------------------------------------------

    async def _file(self, session: Session, typed: str, *, may_leave: bool) -> Completions:
        cwd, variables = session.ledger.row.cwd, session.environment.variables
        if typed in {"~", ".."}:
            typed += "/"
        if typed.startswith(OUTSIDE):
            return await self._outside(cwd, variables, typed) if may_leave else Completions([])
        items, is_partial = await self._files.find(cwd, variables, typed.removeprefix("./"))
        mentions = _mentioned(session, typed)
        if not mentions:
            return Completions(items, partial=is_partial)
        begun = [one for one in mentions if typed and one.text.casefold().startswith(typed.casefold())]
        later = [one for one in mentions if one not in begun]
        found = [*begun[:MAX_BEGUN], *map(Completion, items), *later][:MAX_ITEMS]
        return Completions([one.text for one in found], found, partial=is_partial)

    async def _outside(self, cwd: str, variables: Mapping[str, str], typed: str) -> Completions:
        """What is in the directory that the text names, as far as it is named."""
        folder, _, name = typed.rpartition("/")
        named = variables.get("HOME", "~") + folder[1:] if folder.startswith("~") else folder
        if len(self._looks) >= MAX_LOOKS:
            return Completions([], partial=True)
        look = asyncio.get_running_loop().run_in_executor(None, _named, Path(cwd, named or "/"), name)
        self._looks.add(look)
        look.add_done_callback(self._looks.discard)
        await asyncio.wait([look], timeout=LOOK_S)
        items = look.result() if look.done() else []
        return Completions([f"{folder}/{one}" for one in items], partial=not look.done())

    # --- commands and models ----------------------------------------------------------------------------------

    async def _command(self, session: Session, typed: str) -> Completions:
        found = [Completion(name, command.description, "built in") for name, command in builtins(session).items()]
        if session.extensions is not None:
            found += [
                Completion(one.name, _line(one.description), one.extension)
                for one in session.extensions.offers.commands()
            ]
        taken = {one.text.casefold() for one in found}  # extensions ignore case
        theirs = self._agents.commands(session) or ()
        found += [one for one in theirs if _is_free(one.text, taken) or one.text in OF_OWN_RUNS]
        taken.update(one.text.casefold() for one in found)
        found += [
            Completion(one.name, one.description, one.label, one.hint)
            for one in await self._file_commands.listed(session)
            if _is_free(one.name, taken)
        ]
        # A skill is begun by a call of ours, which another agent does not make.
        skills = () if session.ledger.row.settings.agent else await self._skills(session)
        found += [Completion(SKILL + one.name, _line(one.description), "skill") for one in skills]
        return _best(typed, found)

    async def _model(self, session: Session, typed: str) -> Completions:
        """Those that can be used come first, however well the others fit."""
        # The catalog takes 20 ms for its thousand models, and the first time 0.2 s to be loaded.
        infos = await asyncio.to_thread(self._models.listed, None, session.environment)
        infos.sort(key=lambda info: info.superseded)
        ready = [_model(info) for info in infos if info.ready]
        rest = [_model(info, "no key") for info in infos if not info.ready]
        first, then = _best(typed, ready), _best(typed, rest)
        return Completions([*first.items, *then.items][:MAX_NAMES], [*first.found, *then.found][:MAX_NAMES])


def _mentioned(session: Session, typed: str) -> Sequence[Completion]:
    """What extensions offer to mention, such as the resources of MCP servers; the best first."""
    offered = [] if session.extensions is None else session.extensions.offers.mentions()
    return _best(typed, (Completion(one.text, one.detail, one.extension) for one in offered)).found


def _is_free(name: str, taken: Container[str]) -> bool:
    return name.casefold() not in taken and not is_reserved(name)


def _model(info: ModelInfo, lacks: str = "") -> Completion:
    return Completion(f"{info.provider}/{info.id}", lacks, info.provider)


def _best(typed: str, found: Iterable[Completion]) -> Completions:
    by_text = {one.text: one for one in found if is_typed(one.text)}  # a skill is called what its directory is
    items = ranked(typed, by_text, MAX_NAMES)
    return Completions(items, [by_text[text] for text in items])


def _line(text: str) -> str:
    """A description on one line, which a terminal can show."""
    return blanked(text)[:DETAIL_CHARS]


def _named(folder: Path, typed: str) -> list[str]:
    """What fits in a directory, the best first, directories with a slash behind; nothing when it cannot be read. Blocks."""
    hidden = typed.startswith(".")
    try:
        with os.scandir(folder) as entries:
            names = filter(None, (_name(entry, hidden=hidden) for entry in islice(entries, MAX_ENTRIES)))
            return ranked(typed, sorted(names), MAX_ITEMS)
    except (OSError, ValueError):  # the latter: a name that no path can have
        return []


def _name(entry: os.DirEntry[str], *, hidden: bool) -> str | None:
    if (entry.name.startswith(".") and not hidden) or not is_typed(entry.name):
        return None
    try:
        return f"{entry.name}/" if entry.is_dir() else entry.name
    except OSError:
        return entry.name
