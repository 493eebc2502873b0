"""Slash commands: those that the daemon itself knows, and those of extensions.

/name args  ->  built in, or `skill:NAME`?       it does it
            ->  of an extension?                 what it wants done
            ->  a file of the project, or of the user?   its text is a prompt (`sessions.file_commands`)
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from zotd.contributions.scope import ExtensionScope
from zotd.contributions.toolbox import choose
from zotd.contributions.ui_state import DISPLAY_CHARS, NOTE_CHARS
from zotd.contributions.view import Submission
from zotd.core import records
from zotd.core.depth import TOO_DEEP, is_too_deep
from zotd.core.registry import TOOL_NAME
from zotd.exthost.host import ReloadReport
from zotd.exthost.offers import UnknownCommandError
from zotd.runs.queue import SubmitRequest
from zotd.sessions import file_restores
from zotd.sessions.extension_pool import ExtensionPool
from zotd.sessions.file_commands import FileCommands
from zotd.sessions.file_restores import flag_of
from zotd.sessions.session import Session
from zotd.wire import ext
from zotd.wire.api import CommandResult, FilesRestored, Started
from zotd.wire.errors import Code, CommandError
from zotd.wire.extensions import Finding
from zotd.workspace.context import ContextPaths

OF_CLIENTS = (
    *("help", "new", "sessions", "model", "exit", "quit", "login", "logout", "settings", "rename", "fork"),
    *("steer", "queue", "fallback", "diff", "btw"),
)
"""Commands that clients carry out themselves, and that no extension can have."""


SKILL = "skill:"
"""`/skill:NAME ...` begins a run with that skill."""

KNOWN_NAMES = 40
"""Most commands that an error names."""

PLAN_BEGUN = "the session is read-only until you approve a plan; say what is to be done, or end it with /plan off"
PLAN_ENDED = "planning has ended; the mode is {mode} again"
"""What people are told."""

QUIETED = "its submission is not run: the user has aborted the session and sent nothing since"


Loop = Callable[[Session, str, str], Awaitable[str]]
"""Carries out `/loop` with these arguments for a client of this name; returns what is shown."""


class Asker(Struct, frozen=True):
    """The client that sent a slash command, and how to answer it."""

    sender: str
    """Name of the sender in the queue and the log."""
    respond: Callable[[CommandResult], None]
    """Answers; called before any event that the command causes."""
    client: str | None = None
    """The connection's id, which the extension is told."""
    insert: Callable[[str], None] | None = None
    """Puts text into the editor of the one who asked; None: there is no editor."""
    request: SubmitRequest = field(default_factory=SubmitRequest)
    """What the one who asked wants of the run that the command starts."""
    can_decide: bool = False
    """The one who asked may approve calls, so also a mode that allows more."""


class Commands:
    """Runs slash commands for clients, and for extensions that submit them."""

    def __init__(
        self,
        extension_pool: ExtensionPool,
        files: FileCommands,
        spawn: Callable[[str, Coroutine[object, object, None]], None],
    ) -> None:
        """`spawn` starts a named task for what an extension submits."""
        self.files = files
        """Those that are files."""
        self.loop: Loop = _no_loop
        """What `/loop` does."""
        self._extension_pool = extension_pool
        self._spawn = spawn

    def connect(self, loop: Loop) -> None:
        """Have `/loop` carried out by `loop`; without it there are no timers."""
        self.loop = loop

    async def run(self, session: Session, name: str, args: str, asker: Asker) -> None:
        """Run `/name args` in this session, and answer.

        Raises:
            CommandError: there is no such command, or it failed; one sentence says what, and what to do.
        """
        name = name.removeprefix("/")
        if asker.client is not None:
            session.is_quieted = False  # a person asks for it, also for what the command submits
        builtin = BUILTIN.get(name.casefold())
        if builtin is not None:
            await builtin.run(self, session, args.strip(), asker)
            return
        if name.startswith(SKILL):
            await _skill(session, name.removeprefix(SKILL), args.strip(), asker)
            return
        extensions = self._extension_pool.join(session)
        if extensions is not None and not extensions.offers.has_command(name):
            await extensions.ready()  # perhaps one brings it that is still starting
        if extensions is None or not extensions.offers.has_command(name):
            await self._run_file(session, name, args.strip(), asker)
            return
        try:
            extension, answer = await extensions.offers.invoke(name, args, about=extensions.about, client=asker.client)
        except UnknownCommandError as error:
            raise CommandError(Code.NOT_FOUND, f"there is no /{name} any more") from error
        if answer.error:
            raise CommandError(Code.BAD_REQUEST, answer.error[:NOTE_CHARS])
        await self._carry_out(session, extension, answer, asker)

    async def findings(self, paths: ContextPaths, layers: Sequence[ExtensionScope]) -> list[Finding]:
        """Return why files with commands are not used; `layers`: the hosts of the sessions that could use them."""
        views = [view for layer in layers for view in layer.views.values()]
        owners = {one.name.casefold(): one.extension for view in views for one in view.offers.commands()}
        return await self.files.findings(
            paths, lambda name: "zot" if is_reserved(name) else owners.get(name.casefold(), "")
        )

    async def reload(self, session: Session, name: str | None) -> ReloadReport:
        """Read the manifests of the session's extensions again, and restart them all, or the one with this name."""
        self._extension_pool.join(session)
        return await self._extension_pool.reload(self._extension_pool.of_session(session.id), name)

    # --- of extensions ----------------------------------------------------------------------------------------

    async def _carry_out(self, session: Session, extension: str, answer: ext.CommandResponse, asker: Asker) -> None:
        extensions = session.extensions
        if extensions is None:
            raise CommandError(Code.CONFLICT, f"the session was closed before {extension} answered")
        match answer.action:
            case "prompt" | "tool_prompt":
                await self._prompt(session, extension, answer, asker)
            case "display":
                text = answer.display[:DISPLAY_CHARS]
                asker.respond(CommandResult("display", extension, text))
                extensions.ui_state.display(extension, text)
            case "insert":
                text = answer.insert[:DISPLAY_CHARS]
                asker.respond(CommandResult("insert", extension, text))
                if asker.insert is not None:
                    asker.insert(text)
            case "open_panel" if answer.open_panel is not None:
                asker.respond(CommandResult("open_panel", extension))
                refused = extensions.ui_state.open(extension, answer.open_panel)
                if refused is not None:
                    extensions.ui_state.note(extension, "error", refused)
            case "open_panel":
                raise CommandError(Code.BAD_REQUEST, f"{extension} asked for a panel without naming one")
            case _:
                asker.respond(CommandResult("noop", extension))

    async def _prompt(self, session: Session, extension: str, answer: ext.CommandResponse, asker: Asker) -> None:
        if answer.action == "tool_prompt":
            _check_opening(extension, answer)

        def accepted(started: Started) -> None:
            result = CommandResult("prompt", extension, input=started.input, run=started.run)
            asker.respond(replace(result, position=started.position, started=started.started))

        opening = None
        if answer.action == "tool_prompt":
            opening = records.Opening(answer.tool_name, answer.tool_args or {})
        await session.load()
        await session.prompt(
            answer.prompt or (f"/{answer.tool_name}" if opening else ""),
            [],
            sender=asker.sender,
            when_busy="queue",
            accepted=accepted,
            request=asker.request,
            opening=opening,
        )

    def submitted(self, session: Session, extension: str, frame: Submission) -> None:
        """Run what an extension submits; returns at once."""
        self._spawn(f"what {extension} submits to {session.id}", self._submit(session, extension, frame))

    async def _submit(self, session: Session, extension: str, frame: Submission) -> None:
        if session.is_quieted and session.extensions is not None:  # one that submits at every turn would never end
            session.extensions.ui_state.note(extension, "warn", QUIETED)
            return
        try:
            if isinstance(frame, ext.SubmitSlash):
                name, _, args = frame.text.strip().partition(" ")
                await self.run(session, name, args, Asker(extension, _unheard))
            else:
                await session.load()
                await session.prompt(frame.text, [], sender=extension, when_busy="queue", accepted=lambda _: None)
        except CommandError as error:
            if session.extensions is not None:
                session.extensions.ui_state.note(extension, "error", error.sentence)

    async def _run_file(self, session: Session, name: str, args: str, asker: Asker) -> None:
        command = None if is_reserved(name) else await self.files.find(session, name)
        if command is None:
            known = await self._known(session)
            raise CommandError(Code.NOT_FOUND, f"there is no /{name}; there are {known}")
        accepted = partial(_accepted, asker)
        await self.files.run(session, command, args, sender=asker.sender, accepted=accepted, request=asker.request)

    async def _known(self, session: Session) -> str:
        extensions = session.extensions
        names = [*BUILTIN, *([one.name for one in extensions.offers.commands()] if extensions else [])]
        names += [one.name for one in await self.files.listed(session) if not is_reserved(one.name)]
        more = len(names) - KNOWN_NAMES
        listed = ", ".join(f"/{name}" for name in dict.fromkeys(names[:KNOWN_NAMES]))
        return f"{listed} and {more} more" if more > 0 else listed


async def _clear(_: Commands, session: Session, args: str, asker: Asker) -> None:
    del args
    await session.clear(accepted=lambda: asker.respond(CommandResult("noop")))


async def _compact(_: Commands, session: Session, args: str, asker: Asker) -> None:
    await session.load()
    await session.compact(args, accepted=lambda started: asker.respond(CommandResult("prompt", run=started.run)))


async def _continue(_: Commands, session: Session, args: str, asker: Asker) -> None:
    del args
    await session.load()

    def accepted(started: Started) -> None:
        asker.respond(CommandResult("prompt", input=started.input, run=started.run, started=started.started))

    await session.go_on(accepted=accepted)


async def _reload(commands: Commands, session: Session, args: str, asker: Asker) -> None:
    asker.respond(CommandResult("display", text=_words(await commands.reload(session, args or None))))


async def _undo(_: Commands, session: Session, args: str, asker: Asker) -> None:
    await session.load()
    await file_restores.undo(session, flag_of(args), accepted=lambda done: asker.respond(_displayed(done)))


async def _redo(_: Commands, session: Session, args: str, asker: Asker) -> None:
    await session.load()
    await file_restores.redo(session, flag_of(args), accepted=lambda done: asker.respond(_displayed(done)))


def _displayed(done: FilesRestored) -> CommandResult:
    return CommandResult("display", text=done.text)


async def _plan(_: Commands, session: Session, args: str, asker: Asker) -> None:
    await session.load()
    if args.casefold() == "off":
        if not asker.can_decide:
            raise CommandError(Code.FORBIDDEN, "/plan off may allow more, which requires the role approve")
        words = PLAN_ENDED.format(mode=session.ledger.row.settings.planning)
        await session.plan.end(lambda: asker.respond(CommandResult("display", text=words)))
        return
    settings, extensions = session.ledger.row.settings, session.extensions
    if extensions is not None:
        await extensions.ready()  # perhaps one brings a tool of that name that is still starting
    tool = (choose(settings) if extensions is None else extensions.toolbox(settings)).tools.get("plan")
    if tool is None or tool.extension is not None:
        raise CommandError(
            Code.CONFLICT, "the session has not zot's own tool plan, which --tools and extensions can hide"
        )
    if not args:
        await session.plan.begin(lambda: asker.respond(CommandResult("display", text=PLAN_BEGUN)))
        return
    await session.plan.begin(lambda: None)  # the answer names the run
    await session.prompt(
        args,
        [],
        sender=asker.sender,
        when_busy="queue",
        accepted=partial(_accepted, asker),
        request=asker.request,
    )


async def _loop(commands: Commands, session: Session, args: str, asker: Asker) -> None:
    asker.respond(CommandResult("display", text=await commands.loop(session, args, asker.sender)))


async def _no_loop(session: Session, args: str, by: str) -> str:
    del session, args, by
    raise CommandError(Code.UNSUPPORTED, "only a daemon has timers, so there is no /loop here")


async def _stop(_: Commands, session: Session, args: str, asker: Asker) -> None:
    del args
    asker.respond(CommandResult("noop"))
    session.abort()


async def _skill(session: Session, name: str, args: str, asker: Asker) -> None:
    """What is typed is the prompt, and the call that reads the skill stands behind it as if the model had made it."""
    await session.load()
    await session.prompt(
        f"/{SKILL}{name} {args}".strip(),
        [],
        sender=asker.sender,
        when_busy="queue",
        accepted=partial(_accepted, asker),
        request=asker.request,
        opening=records.Opening("skill", {"name": name}),
    )


def _accepted(asker: Asker, started: Started) -> None:
    result = CommandResult("prompt", input=started.input, run=started.run)
    asker.respond(replace(result, position=started.position, started=started.started))


class BuiltinCommand(Struct, frozen=True):
    """A slash command of the daemon."""

    description: str
    """What it does, for lists; continues the name."""
    run: Callable[[Commands, Session, str, Asker], Awaitable[None]]


BUILTIN: Mapping[str, BuiltinCommand] = {
    "clear": BuiltinCommand("starts the conversation anew; what was said stays in the history", _clear),
    "compact": BuiltinCommand("summarises the conversation; text after it says what to keep", _compact),
    "continue": BuiltinCommand("resumes a run that was cut, failed or was aborted, and the queue", _continue),
    "loop": BuiltinCommand("sends a prompt again and again: 10m PROMPT; without arguments lists loops; stop", _loop),
    "plan": BuiltinCommand(
        "has the model only read until you approve a plan; text after it is the task; off ends it", _plan
    ),
    "redo": BuiltinCommand("makes the changes of files again that /undo has taken back; --keep, --force", _redo),
    "reload-ext": BuiltinCommand("restarts the extensions, or the one that is named", _reload),
    "stop": BuiltinCommand("aborts what runs", _stop),
    "undo": BuiltinCommand("takes back what the last run has changed in files; --keep, --force", _undo),
}
"""Built in, by name."""

RESERVED = (*BUILTIN, *OF_CLIENTS)
"""Names that no extension can have, and no file."""


def is_reserved(name: str) -> bool:
    """Whether a command that is a file cannot have this name, because it means something else."""
    return name.casefold() in RESERVED or name.startswith(SKILL)


def _check_opening(extension: str, answer: ext.CommandResponse) -> None:
    """Refuse a call that must not get into the transcript: each later request of the session would carry it."""
    if not answer.tool_name:
        raise CommandError(Code.BAD_REQUEST, f"{extension} asked for a tool without naming one")
    if not TOOL_NAME.fullmatch(answer.tool_name):
        raise CommandError(
            Code.BAD_REQUEST, f'{extension} asked for the tool "{answer.tool_name[:80]}", which cannot be run'
        )
    if is_too_deep(answer.tool_args):
        raise CommandError(Code.BAD_REQUEST, f"{extension} asked for {answer.tool_name} with {TOO_DEEP}")


def _unheard(result: CommandResult) -> None:
    """An extension that submits a command is not told what came of it."""


def _words(report: ReloadReport) -> str:
    figures = f"{len(report.loaded)} loaded, {len(report.ready)} ready, {len(report.stopped)} stopped"
    return "\n".join([f"extensions reloaded: {figures}", *report.errors])
