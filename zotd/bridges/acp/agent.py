"""Carries out the methods of ACP by commands of the daemon."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from zotd.bridges.acp import options, prompts
from zotd.bridges.acp.daemon import DaemonLink
from zotd.bridges.acp.editor import Editor, Spawn
from zotd.bridges.acp.editor_side import EditorSide
from zotd.bridges.acp.prompting import Prompting
from zotd.bridges.acp.servers import editor_servers
from zotd.bridges.acp.session import OpenSession
from zotd.client.errors import CallError, ClientError
from zotd.client.settings import new_session
from zotd.wire import acp as frames
from zotd.wire import api, auth
from zotd.wire.base import BadFrameError, Frozen, decode
from zotd.wire.jsonrpc import Notification, RpcError, RpcErrorCode, RpcRequest
from zotd.wire.version import VERSION

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Frozen)

PAGE_SESSIONS = 50

NAME_CHARS = 100
"""Longest name of an editor; the daemon accepts 200 characters."""

LOGIN = "zotctl-login"

Respond = Callable[[Frozen], None]


@dataclass(frozen=True, slots=True)
class _Open:
    """A session that the editor has open."""

    session: OpenSession
    prompting: Prompting
    unfollow: Callable[[], object]


class AcpAgent:
    """The agent side of ACP for one editor."""

    def __init__(self, editor: Editor, daemon: DaemonLink, spawn: Spawn) -> None:
        """Serve the requests of `editor` from now on."""
        self._editor = editor
        self._daemon = daemon
        self._spawn = spawn
        self._able = frames.ClientCapabilities()
        self._sessions: dict[str, _Open] = {}
        editor.start(serve=self.serve, hear=self.hear)

    async def serve(self, request: RpcRequest, respond: Respond) -> None:
        """Carry out a request and pass its result to `respond`. Raises RpcError."""
        method = _METHODS.get(request.method)
        if method is None:
            raise RpcError(RpcErrorCode.METHOD, f'there is no method "{request.method}"')
        try:
            await method(self, request.params, respond)
        except BadFrameError as error:
            raise RpcError(RpcErrorCode.PARAMS, f"{request.method}: {error}") from error
        except CallError as error:
            raise RpcError(_code_of(error), error.sentence) from error
        except ClientError as error:
            raise RpcError(RpcErrorCode.INTERNAL, str(error)) from error

    async def hear(self, notification: Notification) -> None:
        """Carry out a notification. Unknown and invalid ones are ignored, because a notification has no answer."""
        if notification.method != "session/cancel":
            return
        try:
            session_id = decode(notification.params, frames.SessionParams).session_id
        except BadFrameError as error:
            log.warning("session/cancel: %s", error)
            return
        if session_id in self._sessions:
            await self._sessions[session_id].prompting.cancel()

    # --- methods ------------------------------------------------------------------------------------------------------

    async def initialize(self, params: frames.Initialize, respond: Respond) -> None:
        """Answer with our protocol version and capabilities; the editor decides whether it can use them."""
        self._able = params.client_capabilities or self._able
        if params.client_info is not None:
            self._daemon.introduce((params.client_info.title or params.client_info.name)[:NAME_CHARS])
        respond(_INITIALIZED)

    async def authenticate(self, params: frames.Authenticate, respond: Respond) -> None:
        """Check whether there is a key, after the person has logged in with `zotctl`."""
        if params.method_id != LOGIN:
            raise RpcError(RpcErrorCode.PARAMS, f'unknown login method "{params.method_id}"')
        keys = await self._daemon.ask(auth.AuthScope(), auth.KeyList, command="auth.list")
        # Providers without variables and without a login need no key, so they do not count.
        if not any((key.variables or key.methods) and key.source is not None for key in keys.providers):
            raise RpcError(RpcErrorCode.AUTH, "there is no key yet; run in a terminal: zotctl login PROVIDER")
        respond(frames.Empty())

    async def new(self, params: frames.NewSession, respond: Respond) -> None:
        """Create a session of the daemon with this program's environment."""
        wanted = new_session(self._daemon.place, self._directory(params.cwd), None)
        created = await self._daemon.ask(wanted, api.Created)
        await self._begin_new(created, params, respond)

    async def load(self, params: frames.OldSession, respond: Respond) -> None:
        """Open an existing session and replay its messages."""
        await self._reopen(params, respond, replays=True)

    async def resume(self, params: frames.OldSession, respond: Respond) -> None:
        """Open an existing session without replaying messages that the editor already has."""
        await self._reopen(params, respond, replays=False)

    async def fork(self, params: frames.OldSession, respond: Respond) -> None:
        """Create a session with the conversation of an existing one, which the editor already has."""
        origin = await self._info(params.session_id)
        self._check_directory(origin, params.cwd)
        created = await self._daemon.ask(api.Fork(session=origin.id), api.Created)
        await self._begin_new(created, params, respond)

    async def delete(self, params: frames.SessionParams, respond: Respond) -> None:
        """Delete a session and its records, for all clients. One that does not exist counts as deleted."""
        opened = self._sessions.get(params.session_id)
        if opened is not None and opened.session.turns:
            await opened.prompting.cancel()
        await self._daemon.delete(params.session_id)
        if opened is not None:
            self._forget(opened, "it was deleted")
        respond(frames.Empty())

    async def listing(self, params: frames.ListSessions, respond: Respond) -> None:
        """List sessions, the newest first."""
        cwd = None if params.cwd is None else self._directory(params.cwd)
        page = await self._daemon.ask(api.SessionList(cwd=cwd, cursor=params.cursor, limit=PAGE_SESSIONS), api.Sessions)
        found = [frames.ListedSession(one.id, one.cwd, one.name or None, one.updated) for one in page.sessions]
        respond(frames.Listed(found, page.cursor))

    async def close(self, params: frames.SessionParams, respond: Respond) -> None:
        """Cancel the editor's own prompts and stop following the session, which continues to exist."""
        opened = self._of(params.session_id)
        if opened.session.turns:
            await opened.prompting.cancel()
        self._forget(opened, "it was closed")
        respond(frames.Empty())

    async def set_mode(self, params: frames.SetModeRequest, respond: Respond) -> None:
        """Change the approval mode."""
        opened = self._of(params.session_id)
        await self._daemon.ask(api.SetMode(session=opened.session.info.id, mode=params.mode_id), api.Nothing)
        respond(frames.Empty())

    async def set_config_option(self, params: frames.SetConfigOption, respond: Respond) -> None:
        """Change the approval mode, the model or the amount of reasoning."""
        session = self._of(params.session_id).session
        change = options.change_of(session.info.id, params.config_id, params.value)
        await self._daemon.ask(change, Frozen)
        # Read again, because the answer has to contain all options with their current values.
        await session.refresh(await self._info(session.info.id))
        respond(frames.ConfigOptions(session.config_options))

    async def prompt(self, params: frames.PromptRequest, respond: Respond) -> None:
        """Carry out a prompt or a slash command; answered at the end of its run."""
        opened = self._of(params.session_id)
        if opened.session.over is not None:
            raise opened.session.over
        respond(frames.Prompted(await opened.prompting.prompt(prompts.entered(params.prompt))))

    # --- open sessions ------------------------------------------------------------------------------------------------

    async def _reopen(self, params: frames.OldSession, respond: Respond, *, replays: bool) -> None:
        info = await self._info(params.session_id)
        self._check_directory(info, params.cwd)
        session = await self._open(info, params)
        opened = self._begin(session, None, replays=replays)
        try:
            await session.until_open()
        except RpcError:
            self._forget(opened, "it did not open")
            raise
        respond(frames.LoadSessionResult(options.modes(session.info), session.config_options))

    async def _begin_new(
        self, created: api.Created, params: frames.NewSession | frames.OldSession, respond: Respond
    ) -> None:
        session = await self._open(created.session, params)
        # Answered before the first update: an editor does not know the session's id before.
        respond(frames.NewSessionResult(created.session.id, options.modes(session.info), session.config_options))
        self._begin(session, api.Cursor(created.epoch, created.seq))

    def _check_directory(self, info: api.SessionInfo, path: str) -> None:
        cwd = self._directory(path)
        # The editor would resolve paths of the session in the wrong directory.
        if info.cwd != cwd:
            raise RpcError(RpcErrorCode.PARAMS, f"the session {info.id} works in {info.cwd}, not in {cwd}")

    async def _info(self, session_id: str) -> api.SessionInfo:
        return await self._daemon.ask(api.OfSession(session_id), api.SessionInfo, command="session.get")

    async def _open(self, info: api.SessionInfo, params: frames.NewSession | frames.OldSession) -> OpenSession:
        able = self._able
        side = EditorSide(
            params.cwd,
            editor_servers(params.mcp_servers),
            # The files of a daemon on another machine are not those of the editor.
            frames.FileSystem() if self._daemon.place.is_remote or able.fs is None else able.fs,
            shows_notices=able.session is not None and able.session.notices is not None,
            has_forms=able.elicitation is not None and able.elicitation.form is not None,
            # A terminal of the editor is on this machine, too.
            has_terminals=able.terminal is True and not self._daemon.place.is_remote,
            shows_terminals=able.meta is not None and able.meta.terminal_output is True,
        )
        models = await self._daemon.ask(api.GetModels(session=info.id, all=True), api.Models)
        return OpenSession(
            info,
            models.models,
            daemon=self._daemon,
            editor=self._editor,
            spawn=self._spawn,
            side=side,
        )

    def _begin(self, session: OpenSession, after: api.Cursor | None, *, replays: bool = False) -> _Open:
        before = self._sessions.get(session.info.id)
        if before is not None:  # opened again: two followers would send each update twice
            self._forget(before, "it was opened a second time and continues there")
        unfollow = self._spawn(f"session {session.info.id}", session.follow(after, replays=replays))
        prompting = Prompting(session, daemon=self._daemon, editor=self._editor)
        opened = self._sessions[session.info.id] = _Open(session, prompting, unfollow)
        return opened

    def _of(self, session_id: str) -> _Open:
        opened = self._sessions.get(session_id)
        if opened is None:
            raise RpcError(RpcErrorCode.NOT_FOUND, f"the session {session_id} is not open here; session/load opens it")
        return opened

    def _forget(self, opened: _Open, why: str) -> None:
        """Stop following a session; its pending requests are answered with `why`."""
        session_id = opened.session.info.id
        opened.unfollow()
        opened.session.leave(RpcError(RpcErrorCode.INTERNAL, f"the session {session_id} is no longer followed: {why}"))
        if self._sessions.get(session_id) is opened:
            del self._sessions[session_id]

    def _directory(self, path: str) -> str:
        if not path.startswith("/"):
            raise RpcError(RpcErrorCode.PARAMS, f'the working directory must be absolute, "{path}" is not')
        return self._daemon.place.real_path(path)


def _code_of(error: CallError) -> RpcErrorCode:
    if (
        error.code == "blocked" and "zotctl login" in error.sentence
    ):  # the code alone is not enough: a damaged session is `blocked` too
        return RpcErrorCode.AUTH
    return _CODES.get(error.code, RpcErrorCode.INTERNAL)


_CODES = {"not_found": RpcErrorCode.NOT_FOUND, "bad_request": RpcErrorCode.PARAMS, "too_large": RpcErrorCode.PARAMS}

_INITIALIZED = frames.Initialized(
    frames.VERSION,
    frames.AgentCapabilities(
        load_session=True,
        prompt_capabilities=frames.PromptCapabilities(image=True, embedded_context=True),
        mcp_capabilities=frames.McpCapabilities(http=True, sse=True),
        session_capabilities=frames.SessionCapabilities(*(frames.Empty() for _ in range(5))),
    ),
    [frames.AuthMethod(LOGIN, "Give zot a key", "Run in a terminal: zotctl login PROVIDER")],
    frames.Implementation("zot", VERSION, "zot"),
)

Method = Callable[[AcpAgent, bytes, Respond], Awaitable[None]]


def _method(kind: type[T], carry_out: Callable[[AcpAgent, T, Respond], Awaitable[None]]) -> Method:
    """Return a method that decodes its parameters as `kind`."""
    return lambda agent, params, respond: carry_out(agent, decode(params, kind), respond)


_METHODS: dict[str, Method] = {
    "initialize": _method(frames.Initialize, AcpAgent.initialize),
    "authenticate": _method(frames.Authenticate, AcpAgent.authenticate),
    "session/new": _method(frames.NewSession, AcpAgent.new),
    "session/load": _method(frames.OldSession, AcpAgent.load),
    "session/resume": _method(frames.OldSession, AcpAgent.resume),
    "session/list": _method(frames.ListSessions, AcpAgent.listing),
    "session/close": _method(frames.SessionParams, AcpAgent.close),
    "session/delete": _method(frames.SessionParams, AcpAgent.delete),
    "session/fork": _method(frames.OldSession, AcpAgent.fork),
    "session/set_mode": _method(frames.SetModeRequest, AcpAgent.set_mode),
    "session/set_config_option": _method(frames.SetConfigOption, AcpAgent.set_config_option),
    "session/prompt": _method(frames.PromptRequest, AcpAgent.prompt),
}
