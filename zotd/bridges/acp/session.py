"""A session of the daemon that an editor has open: forwards its events to the editor.

    follower ── batches ──> updates ──> editor          prompts ──> daemon ──> turns ──> stop reason
                                └──> questions ──> daemon

While the editor does not read, the follower's connection is not read either. The daemon then treats it as a slow client,
and missed events arrive with the next connection.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import aclosing, nullcontext, suppress
from itertools import chain

from msgspec.structs import replace

from zotd.bridges.acp import options
from zotd.bridges.acp.calls import PathResolver
from zotd.bridges.acp.daemon import DaemonLink
from zotd.bridges.acp.editor import Editor, Spawn
from zotd.bridges.acp.editor_side import EditorSide
from zotd.bridges.acp.files import FileRequests
from zotd.bridges.acp.history import older
from zotd.bridges.acp.questions import PermissionRequests
from zotd.bridges.acp.terminals import TerminalRequests
from zotd.bridges.acp.turns import PromptTurn
from zotd.bridges.acp.updates import Remark, Updates, merged, plan_update
from zotd.client.client import Client
from zotd.client.errors import CallError, ClientError
from zotd.client.follow import Disconnected, Follower
from zotd.wire import api, events
from zotd.wire.acp import (
    AgentMessageChunk,
    AvailableCommand,
    CommandsUpdate,
    ConfigOption,
    ConfigUpdate,
    Cost,
    InfoUpdate,
    ModeUpdate,
    NoticeUpdate,
    TextBlock,
    Update,
    UsageUpdate,
)
from zotd.wire.content import Tokens
from zotd.wire.jsonrpc import RpcError, RpcErrorCode

log = logging.getLogger(__name__)

OPEN_S = 60.0
"""Time limit for opening a session with its history. A long history takes a second, a slow editor more."""

REJOIN_S = 5.0
"""How long a prompt waits for the MCP servers and files of the editor to be known to a daemon that was restarted."""

PATIENCE = 4
"""Failed attempts to connect before the person is told. A daemon that restarts is back earlier, within about a second."""

UNKNOWN = "the outcome of this prompt is unknown; load the session again to see it"


class OpenSession:
    """One session that is open in one editor."""

    def __init__(
        self,
        info: api.SessionInfo,
        models: Sequence[api.ModelInfo],
        *,
        daemon: DaemonLink,
        editor: Editor,
        spawn: Spawn,
        side: EditorSide,
    ) -> None:
        """Prepare a session; `models` are those to choose from. Events are followed once `follow` runs."""
        self.info = info
        self._side = side
        self._files = FileRequests(info.id, editor, side.fs, (info.cwd, side.cwd))
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the editor has the history; fails with ClientError or RpcError."""
        self.over: RpcError | None = None
        """Why the session is no longer followed, or None."""
        self.turns: list[PromptTurn] = []
        """Unanswered prompts of the editor, oldest first."""
        self.order = asyncio.Lock()
        """Held while events are handled and while a prompt is being accepted, so that the id of a run is known before its
        first event is handled."""
        self.displayed: str | None = None
        """Text that the answer to a command has shown and that an event will repeat."""
        self._models = models
        self._daemon = daemon
        self._editor = editor
        self._spawn = spawn
        self._told_servers: Sequence[str] = ()
        # HOME of this machine has no meaning on a remote one.
        home = "" if daemon.place.is_remote else daemon.env.get("HOME", "")
        self._updates = Updates(PathResolver(info.cwd, home), side.shows_terminals)
        self._terminals = TerminalRequests(
            info.id, editor, spawn, offered=side.has_terminals, show=self.show, updates=self._updates
        )
        self._questions = PermissionRequests(info.id, editor, daemon, spawn, has_forms=side.has_forms)
        self._follower: Follower | None = None
        self._commands: list[AvailableCommand] = []
        self._partial = ""
        """The part of a reply in progress that came with the snapshot."""
        self._failures = 0
        self._equipped = asyncio.Event()
        """The session is followed, and the daemon knows what the editor brings along."""

    async def refresh(self, info: api.SessionInfo) -> None:
        """Take new settings of the session; the event about them may come before or after."""
        before, self.info = self.info, info
        if info.mode != before.mode:
            await self.show(ModeUpdate(info.mode))

    def displayed_by_command(self, text: str | None) -> None:
        """Remember what the answer to a command has shown, so that the event that repeats it is not shown; None: nothing."""
        self.displayed = text

    @property
    def config_options(self) -> list[ConfigOption]:
        """The options with their current values."""
        return options.config_options(self.info, self._models)

    async def follow(self, after: api.Cursor | None, *, replays: bool = False) -> None:
        """Forward events until cancelled or the session is deleted. With `replays`, send the history first."""
        env, name = self._daemon.env, self._daemon.name
        self._follower = Follower(self.info.id, after=after, env=env, name=name, can_approve=True)
        try:
            async with aclosing(self._follower.items()) as items:
                async for item in items:
                    await self._apply(item, replays=replays)
        except ClientError as error:
            self._end(error)

    async def until_open(self) -> None:
        """Wait until the editor has the history, and the daemon what the editor brings along. Raises like `opened`."""
        try:
            async with asyncio.timeout(OPEN_S):
                # Shielded: a timeout must not cancel the future, which `leave` completes.
                await asyncio.shield(self.opened)
        except TimeoutError as error:
            sentence = f"the session {self.info.id} did not open within {OPEN_S:g} s"
            raise RpcError(RpcErrorCode.INTERNAL, sentence) from error

    async def until_equipped(self) -> None:
        """Wait until the session is open, and after a lost connection, at most `REJOIN_S` until it is followed again.

        Starts the daemon if necessary. Raises like `opened`.
        """
        await self.until_open()
        if self._equipped.is_set() or self._follower is None:
            return
        await self._daemon.ask(api.Nothing(), api.Pong, command="ping")
        self._follower.hurry()
        with suppress(TimeoutError):
            async with asyncio.timeout(REJOIN_S):
                await self._equipped.wait()

    async def show(self, update: Update | Remark) -> None:
        """Send an update once the editor has room."""
        if isinstance(update, Remark):
            await self._remark(update)
            return
        client = self._follower.client if self._follower is not None else None
        while not self._editor.has_room:
            # The daemon notices a slow client by unread output, so reading ahead here would hide it.
            with client.connection.unread() if client is not None else nullcontext():
                await self._editor.room()
        self._editor.update(self.info.id, update)

    async def tell_commands(self) -> None:
        """Send the list of slash commands if it has changed."""
        found = await self._daemon.ask(api.Complete(session=self.info.id, kind="command", text=""), api.Completions)
        commands = options.commands(found.found)
        if commands != self._commands:
            self._commands = commands
            await self.show(CommandsUpdate(commands))

    def leave(self, why: RpcError) -> None:
        """Close the session for this editor: withdraw questions, and answer accepted prompts with `why`."""
        self.over = self.over or why
        self._questions.keep(set())
        self._terminals.kill_all()
        if not self.opened.done():
            self.opened.set_exception(why)
            self.opened.exception()  # marks it as retrieved: after `session/new` nothing awaits it
        for turn in self.turns:
            if turn.run is not None:
                turn.fail(why)

    # --- what comes from the daemon -----------------------------------------------------------------------------------

    async def _apply(self, item: api.Attached | Disconnected | list[events.AnyEvent], *, replays: bool) -> None:
        async with self.order:
            match item:
                case api.Attached():
                    await self._attached(item, replays=replays)
                case Disconnected():
                    await self._disconnected(item)
                case batch:
                    for event in merged(batch):
                        await self._take(event)

    async def _attached(self, snapshot: api.Attached, *, replays: bool) -> None:
        self._failures = 0
        self._partial = snapshot.run.partial.text if snapshot.run is not None else ""
        is_first = not self.opened.done()
        if snapshot.mode == "snapshot":
            self.info = snapshot.session
            self._updates.begin_anew()
            if not is_first:
                await self._missed(snapshot)
            elif replays:
                await self._replay(snapshot)
            else:  # `session/resume`: the editor already has the messages
                list(self._updates.caught_up(self._partial))
                await self._tell_usage(snapshot.context, snapshot.usage)
            if snapshot.plan is not None:
                await self.show(plan_update(snapshot.plan))
            for question in snapshot.approvals:
                await self._ask(question)
        assert self._follower is not None
        if (client := self._follower.client) is not None:
            if is_first:
                await self._bring(client)
            else:  # events that were missed follow, and must not wait for an answer
                self._spawn(f"what the editor brings to {self.info.id}", self._bring(client))
            self._spawn(f"commands of {self.info.id}", self._watch_commands(client))
        if is_first:
            self.opened.set_result(None)

    async def _bring(self, client: Client) -> None:
        """Bring the editor's MCP servers and files along, over each new connection, because they end with it."""
        await self._files.offer(client)
        await self._terminals.offer(client)
        told = await self._side.servers.bring(self.info.id, client)
        self._equipped.set()
        if told != self._told_servers:
            self._told_servers = told
            for sentence in told:
                await self._remark(Remark("warning", sentence))

    async def _replay(self, snapshot: api.Attached) -> None:
        pages, is_cut = await older(self._daemon, snapshot)
        if is_cut:
            await self._remark(Remark("warning", f"older messages are left out; see: zotctl export {self.info.id}"))
        for message in chain.from_iterable(pages):
            await self._show_all(self._updates.replay(message))
        await self._tell_usage(snapshot.context, snapshot.usage)

    async def _missed(self, snapshot: api.Attached) -> None:
        """Handle a gap in the events: the cursor was not valid any more."""
        await self._remark(Remark("warning", "events in between are not shown; load the session again to see it"))
        self._questions.keep({question.approval for question in snapshot.approvals})
        waiting = {item.id for item in snapshot.queue}
        for turn in self.turns:
            # Prompts in the queue are unaffected by the gap; a run that is neither waiting nor current ended unseen.
            if turn.run is None or turn.run.input_id in waiting:
                continue
            if snapshot.run is None or snapshot.run.id != turn.run.run_id:
                turn.fail(RpcError(RpcErrorCode.INTERNAL, UNKNOWN))
        await self.show(ModeUpdate(self.info.mode))
        await self.show(ConfigUpdate(self.config_options))

    async def _disconnected(self, lost: Disconnected) -> None:
        self._failures += 1
        self._equipped.clear()
        self._terminals.kill_all()
        # Equal, not greater: one warning for each outage is enough.
        if self._failures == PATIENCE:
            reason = lost.reason.rstrip(".")
            hint = "" if self._daemon.place.is_remote else " (zotctl start)"
            await self._remark(Remark("warning", f"{reason}; it continues when zotd is back{hint}"))
        await self._daemon.revive()

    async def _take(self, event: events.AnyEvent) -> None:
        if not self._is_known(event):
            await self._show_all(self._updates.of(event))
        await self._react(event)
        # Last, because the answer to a prompt has to follow all its updates.
        for turn in self.turns:
            turn.on(event)

    async def _react(self, event: events.AnyEvent) -> None:
        match event:
            case events.ReplayComplete():
                await self._show_all(self._updates.caught_up(self._partial))
            case events.ApprovalRequested():
                await self._ask(event)
            case events.ApprovalResolved(approval=approval):
                self._questions.close(approval)
            case events.Interrupted(what="run"):  # the daemon was killed, so no `approval_resolved` was sent
                self._questions.keep(set())
            case events.FileRequest() | events.TerminalRequest() if self._follower and self._follower.client:
                self._serve(event, self._follower.client)
            case events.SessionChanged():
                await self._changed(event)
            case events.UserMessage() if not self.info.name:
                await self._learn_name()
            case events.Usage(cumulative=total):
                used = event.input + event.output + event.cache_read + event.cache_write
                await self._tell_usage(used, total)
            case _:
                pass

    def _serve(self, request: events.FileRequest | events.TerminalRequest, client: Client) -> None:
        if isinstance(request, events.FileRequest):
            self._spawn(f"the file {request.path}", self._files.serve(request, client))
        elif request.action == "kill":
            self._terminals.kill(request.id)
        else:
            self._spawn(f"the terminal of {request.call}", self._terminals.serve(request, client))

    def _is_known(self, event: events.AnyEvent) -> bool:
        """Return True for an event that the editor already knows.

        That is its own prompt, an error that answers its prompt, or the text that answers its command.
        """
        match event:
            case events.UserMessage(input=given) if given is not None:
                return any(turn.run is not None and turn.run.input_id == given for turn in self.turns)
            case events.Error():
                return any(turn.reports(event) for turn in self.turns)
            case events.ExtDisplay(text=text) if text == self.displayed:
                self.displayed = None
                return True
            case _:
                return False

    async def _show_all(self, told: Iterable[Update | Remark]) -> None:
        for one in told:
            await self.show(one)

    async def _ask(self, question: events.ApprovalRequested) -> None:
        call = self._updates.question(question)
        await self.show(call)
        self._questions.ask(question, call)

    async def _changed(self, change: events.SessionChanged) -> None:
        before = self.info
        self.info = after = replace(
            before,
            state=change.state,
            name=change.name or before.name,
            provider=change.provider or before.provider,
            model=change.model or before.model,
            reasoning=change.reasoning or before.reasoning,
            mode=change.mode or before.mode,
        )
        if after.name != before.name:
            await self.show(InfoUpdate(after.name))
        if after.mode != before.mode:
            await self.show(ModeUpdate(after.mode))
        # Editors replace all options at once, so they are sent only if one of them has changed.
        if self._options_of(after) != self._options_of(before):
            await self.show(ConfigUpdate(self.config_options))

    @staticmethod
    def _options_of(info: api.SessionInfo) -> tuple[str, ...]:
        return info.mode, info.provider, info.model, info.reasoning

    async def _learn_name(self) -> None:
        """Fetch the name of a session after its first prompt, which names it without an event."""
        with suppress(ClientError):  # only the name would be missing
            found = await self._daemon.ask(api.OfSession(self.info.id), api.SessionInfo, command="session.get")
            if found.name:
                self.info = replace(self.info, name=found.name)
                await self.show(InfoUpdate(found.name))

    async def _tell_usage(self, used: int, total: Tokens) -> None:
        size = options.window_of(self.info, self._models)
        if size:  # without the size of the window the number is meaningless
            await self.show(UsageUpdate(used, size, Cost(total.cost_usd, "USD")))

    async def _remark(self, remark: Remark) -> None:
        if self._side.shows_notices:
            await self.show(NoticeUpdate(remark.severity, remark.text))
        elif remark.severity != "info":
            await self.show(AgentMessageChunk(TextBlock(f"\n\n[{remark.severity}: {remark.text}]\n\n")))

    async def _watch_commands(self, client: Client) -> None:
        """Update the slash commands when extensions change; ends with the connection."""
        with suppress(ClientError), client.connection.feed(None) as feed:
            await client.ask(api.Subscribe(["extensions"]), api.Nothing)
            await self.tell_commands()
            while True:
                if any(isinstance(event, events.ExtState) for event in await feed.batch()):
                    await self.tell_commands()

    def _end(self, error: ClientError) -> None:
        """Close a session that does not exist, or no longer exists."""
        log.info("the session %s is left: %s", self.info.id, error)
        if not self.opened.done():
            self.opened.set_exception(error)
            self.opened.exception()
        code = RpcErrorCode.NOT_FOUND if isinstance(error, CallError) else RpcErrorCode.INTERNAL
        self.leave(RpcError(code, str(error)))
