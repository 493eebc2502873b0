"""Slash commands: those that the daemon itself knows, and those of extensions.

/name args  ->  built in, or `skill:NAME`?       it does it
            ->  of an extension?                 what it wants done (`sessions.extension_answers`)
            ->  of the other agent that runs the session?    sent to it as it is; also `/compact` and `/plan`
            ->  a file of the project, or of the user?   its text is a prompt (`sessions.file_commands`)
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

from msgspec import Struct

from zotd.contributions.scope import ExtensionScope
from zotd.contributions.toolbox import choose
from zotd.contributions.ui_state import NOTE_CHARS
from zotd.contributions.view import Submission
from zotd.core import records
from zotd.exthost.host import ReloadReport
from zotd.exthost.offers import UnknownCommandError
from zotd.sessions import file_restores
from zotd.sessions.asker import Asker
from zotd.sessions.extension_answers import carry_out
from zotd.sessions.extension_pool import ExtensionPool
from zotd.sessions.file_commands import FileCommands
from zotd.sessions.file_restores import flag_of
from zotd.sessions.other_agents import OtherAgents
from zotd.sessions.session import Session
from zotd.wire import ext
from zotd.wire.api import CommandResult, FilesRestored, Started
from zotd.wire.errors import Code, CommandError
from zotd.wire.extensions import Finding
from zotd.workspace.context import ContextPaths

OF_CLIENTS = (
    *("help", "new", "sessions", "model", "exit", "quit", "login", "logout", "settings", "rename", "fork"),
    *("steer", "queue", "fallback", "diff", "btw", "agent-options"),
)
"""Commands that clients carry out themselves, and that no extension can have."""

OF_OWN_RUNS = ("compact", "plan")
"""Built-in commands that mean nothing in a session that another agent runs: there they are the agent's, if it has them."""

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


class Commands:
    """Runs slash commands for clients, and for extensions that submit them."""

    def __init__(
        self,
        extension_pool: ExtensionPool,
        files: FileCommands,
        spawn: Callable[[str, Coroutine[object, object, None]], None],
        agents: OtherAgents,
    ) -> None:
        """`spawn` starts a named task for what an extension submits; `agents`: those of others, which have commands too."""
        self.files = files
        """Those that are files."""
        self.loop: Loop = _no_loop
        """What `/loop` does."""
        self._extension_pool = extension_pool
        self._spawn = spawn
        self.agents = agents
        """Those that run the turns of sessions, and have commands of their own."""

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
        if name in OF_OWN_RUNS and self._is_of_agent(session, name):
            await _as_typed(session, f"/{name} {args}", asker)
            return
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
            await self._run_other(session, name, args.strip(), asker)
            return
        try:
            extension, answer = await extensions.offers.invoke(name, args, about=extensions.about, client=asker.client)
        except UnknownCommandError as error:
            raise CommandError(Code.NOT_FOUND, f"there is no /{name} any more") from error
        if answer.error:
            raise CommandError(Code.BAD_REQUEST, answer.error[:NOTE_CHARS])
        await carry_out(session, extension, answer, asker)

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

    async def _run_other(self, session: Session, name: str, args: str, asker: Asker) -> None:
        """Run a command of the other agent, or a file."""
        is_free = not is_reserved(name)
        is_offered = is_free and self._is_of_agent(session, name)
        command = await self.files.find(session, name) if is_free and not is_offered else None
        if command is not None:
            accepted = asker.accepted
            await self.files.run(session, command, args, sender=asker.sender, accepted=accepted, request=asker.request)
        elif is_offered or (
            is_free and self.agents.commands(session) is None
        ):  # an agent that has not listed any yet may have it
            await _as_typed(session, f"/{name} {args}", asker)
        else:
            known = await self._known(session)
            raise CommandError(Code.NOT_FOUND, f"there is no /{name}; there are {known}")

    def _is_of_agent(self, session: Session, name: str) -> bool:
        return any(one.text == name for one in self.agents.commands(session) or ())

    async def _known(self, session: Session) -> str:
        extensions = session.extensions
        names = [*builtins(session), *([one.name for one in extensions.offers.commands()] if extensions else [])]
        names += [one.text for one in self.agents.commands(session) or ()]
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
        accepted=asker.accepted,
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
    await _as_typed(session, f"/{SKILL}{name} {args}", asker, records.Opening("skill", {"name": name}))


async def _as_typed(session: Session, text: str, asker: Asker, opening: records.Opening | None = None) -> None:
    """Send what was typed as a prompt; other agents find their commands in prompts."""
    await session.load()
    await session.prompt(
        text.strip(),
        [],
        sender=asker.sender,
        when_busy="queue",
        accepted=asker.accepted,
        request=asker.request,
        opening=opening,
    )


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


def builtins(session: Session) -> Mapping[str, BuiltinCommand]:
    """Return the built-in commands that mean something in a session."""
    if not session.ledger.row.settings.agent:
        return BUILTIN
    return {name: command for name, command in BUILTIN.items() if name not in OF_OWN_RUNS}


RESERVED = (*BUILTIN, *OF_CLIENTS)
"""Names that no extension can have, and no file."""


def is_reserved(name: str) -> bool:
    """Whether a command that is a file cannot have this name, because it means something else."""
    return name.casefold() in RESERVED or name.startswith(SKILL)


def _unheard(result: CommandResult) -> None:
    """An extension that submits a command is not told what came of it."""


def _words(report: ReloadReport) -> str:
    figures = f"{len(report.loaded)} loaded, {len(report.ready)} ready, {len(report.stopped)} stopped"
    return "\n".join([f"extensions reloaded: {figures}", *report.errors])
