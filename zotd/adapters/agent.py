"""Another agent at work for one session: its process, its own session, and one turn at a time.

    begin ──> process ──> initialize ──> session/new | resume | load ──> session/prompt ──> turn
      ^                                                                                        │
      └──────── answered, or cancelled and silent for `CANCEL_S`: the process is ended <───────┘

The process stays for the next turn. When it has died, the next turn starts another one, which takes the agent's session up again if
the agent can do that. A prompt is sent once: what became of it when the process died is not known, so it is not repeated.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol

from zotd.adapters.catalog import Adapter
from zotd.adapters.connection import AdapterConnection, AdapterError, AdapterListener, RpcRefusedError
from zotd.adapters.offers import AgentOffers
from zotd.adapters.turn import DrivenTurn
from zotd.adapters.updates import take_update
from zotd.core.retry import Failure, ModelError
from zotd.wire.acp import (
    VERSION,
    ClientCapabilities,
    ContentBlock,
    ImageBlock,
    Implementation,
    Initialize,
    NewSession,
    OldSession,
    Permission,
    PermissionOutcome,
    PromptRequest,
    SessionParams,
    TextBlock,
)
from zotd.wire.acp_reports import (
    Ignored,
    Introduction,
    OpenedSession,
    PermissionRequest,
    ReportedCapabilities,
    TurnResult,
    UpdateParams,
)
from zotd.wire.api import Completion
from zotd.wire.base import BadFrameError, decode
from zotd.wire.jsonrpc import RpcErrorCode, RpcRequest
from zotd.wire.plan import PlanStep
from zotd.wire.version import VERSION as OUR_VERSION

CANCEL_S = 10.0
"""How long an agent has to end a turn that was cancelled, in seconds, before its process is ended."""

ASKED = 64
"""Most permissions that an agent may wait for at once."""

log = logging.getLogger(__name__)

Connect = Callable[[AdapterListener], AdapterConnection]
"""Starts the adapter. Raises OSError and ValueError if nothing was started."""

Spawn = Callable[[str, Coroutine[object, object, None]], None]


class AgentHome(Protocol):
    """What the session of ours keeps for its agent, and decides."""

    cwd: str

    @property
    def remembered(self) -> str | None:
        """The id of the agent's session, as it is on record."""
        ...

    @property
    def has_history(self) -> bool:
        """Whether there was a conversation before this turn."""
        ...

    async def remember(self, agent_session: str) -> None:
        """Put the id of the agent's session on record."""
        ...

    async def planned(self, steps: Sequence[PlanStep]) -> None:
        """Put the agent's plan on record."""
        ...

    async def permit(self, turn: DrivenTurn, request: PermissionRequest) -> str | None:
        """Return the option that is the answer; None: nobody has decided, because the turn or the question has ended."""
        ...


class OtherAgent:
    """The agent of one session."""

    def __init__(self, adapter: Callable[[], Adapter], home: AgentHome, *, connect: Connect, spawn: Spawn) -> None:
        """`adapter` returns it as the configuration has it now."""
        self._adapter = adapter
        self.turn: DrivenTurn | None = None
        """The turn in progress."""
        self.unsent: Sequence[ContentBlock] | None = None
        """The prompt of a turn that could not begin, for whoever goes on with it."""
        self._home = home
        self._connect = connect
        self._spawn = spawn
        self._connection: AdapterConnection | None = None
        self._session = ""
        """The agent's id of its session, while the process runs."""
        self._abilities = ReportedCapabilities()
        self._offers = AgentOffers(adapter().name)
        self._cost_usd = 0.0
        """Cost of the agent's session so far, as it was told last."""
        self._asking: dict[asyncio.Task[None], RpcRequest] = {}
        """What waits for a person's decision."""
        self._quiet = asyncio.Event()
        """No turn is under way, not even one that was cancelled."""
        self._quiet.set()
        self._notes: list[str] = []

    @property
    def adapter(self) -> Adapter:
        """What speaks ACP for it."""
        return self._adapter()

    @property
    def title(self) -> str:
        """The agent's name, for people."""
        return self.adapter.title

    @property
    def commands(self) -> Sequence[Completion] | None:
        """The slash commands that it offers in our session; None: it has not listed any yet."""
        return self._offers.of(self._home.remembered)

    async def begin(self, prompt: Sequence[ContentBlock]) -> tuple[DrivenTurn, list[str]]:
        """Send a prompt; returns its turn, and what people should know.

        Raises ModelError when the agent cannot be started or does not answer; nothing was sent then.
        """
        self.unsent = prompt
        await self._quiet.wait()  # at most `CANCEL_S`
        self._notes = []
        connection = await self._ready()
        turn = self.turn = DrivenTurn(self.title, overrun=connection.kill)
        self.unsent = None
        self._quiet.clear()
        self._spawn(f"turn of {self.title}", self._run(connection, turn, self._accepted(prompt)))
        return turn, self._notes

    def end_turn(self) -> None:
        """Cancel the turn, if one is in progress: nobody follows it any more."""
        turn, self.turn = self.turn, None
        if turn is None or turn.is_over:
            return
        turn.failed(f"the turn of {self.title} was cancelled")
        for task in list(self._asking):
            task.cancel()
        if self._connection is not None:
            self._connection.notify("session/cancel", SessionParams(self._session))
            self._spawn(f"cancelled turn of {self.title}", self._settle(self._connection))

    async def stop(self) -> None:
        """End the turn and the process."""
        self.end_turn()
        if self._connection is not None:
            await self._connection.stop()

    # --- zotd.adapters.connection.AdapterListener -----------------------------------------------------------------------

    def notified(self, method: str, params: bytes) -> None:
        """Take an update of our session; others are skipped."""
        if method != "session/update":
            return
        try:
            update = decode(params, UpdateParams)
            if self._session in ("", update.session_id):  # commands are often listed before the session is open
                self._offers.take(update.session_id, bytes(update.update))
            if update.session_id == self._session:
                take_update(bytes(update.update), self.turn, self)
            elif self._session:
                log.warning("%s reports about a session that is not ours; that is skipped", self.title)
        except BadFrameError as error:
            log.warning("an update of %s is skipped: %s", self.title, error)

    def asked(self, request: RpcRequest) -> None:
        """Take a request. Files and terminals were not offered."""
        if request.method != "session/request_permission":
            self._refuse(request, RpcErrorCode.METHOD, f"zot does not offer {request.method}")
            return
        try:
            question = decode(request.params, PermissionRequest)
        except BadFrameError as error:
            self._refuse(request, RpcErrorCode.PARAMS, str(error))
            return
        if question.session_id != self._session:
            self._refuse(request, RpcErrorCode.PARAMS, "this session is not yours to ask for")
        elif self.turn is None or len(self._asking) >= ASKED:
            self._permission(request, None)
        else:
            self._spawn(f"permission for {self.title}", self._ask(self.turn, request, question))

    def gone(self, sentence: str) -> None:
        """End what the process has left."""
        self._connection, self._session = None, ""
        if self.turn is not None:
            self.turn.failed(sentence)
        for task in list(self._asking):
            task.cancel()

    # --- zotd.adapters.updates.SessionNews ----------------------------------------------------------------------------

    def costs(self, total_usd: float) -> None:
        """Tell the turn what has been added."""
        if self.turn is not None:
            self.turn.costs(total_usd - self._cost_usd)
        self._cost_usd = total_usd

    def planned(self, steps: Sequence[PlanStep]) -> None:
        """Have the plan recorded."""
        self._spawn(f"plan of {self.title}", self._home.planned(steps))

    # --- inside -------------------------------------------------------------------------------------------------------

    async def _run(self, connection: AdapterConnection, turn: DrivenTurn, prompt: list[ContentBlock]) -> None:
        """Have the turn end as the agent says, or with its process."""
        try:
            params = PromptRequest(self._session, prompt)
            turn.answered(await connection.call("session/prompt", params, TurnResult))
        except AdapterError as error:
            turn.failed(str(error))
        except RpcRefusedError as error:
            turn.failed(self._refusal(error).sentence)
        finally:
            self._quiet.set()

    async def _settle(self, connection: AdapterConnection) -> None:
        try:
            async with asyncio.timeout(CANCEL_S):
                await self._quiet.wait()
        except TimeoutError:
            connection.kill(f"{self.title} did not end its turn within {CANCEL_S:g} s of being told; it was ended")

    async def _ready(self) -> AdapterConnection:
        """Return the connection to a process that has our session open."""
        if self._connection is not None and self._session and self._session == self._home.remembered:
            return self._connection
        connection, is_new = self._connection, self._connection is None
        try:
            connection = connection or self._connect(self)
        except (OSError, ValueError) as error:
            raise self._unstarted(error) from error
        self._connection, self._session = connection, ""
        try:
            async with asyncio.timeout(self.adapter.start_s):
                if is_new:
                    await self._introduce(connection)
                await self._open(connection)
        except TimeoutError as error:
            await connection.stop()
            sentence = f"{self.title} was not ready within {self.adapter.start_s:g} s; it was ended"
            raise ModelError(Failure.UNAVAILABLE, sentence) from error
        except AdapterError as error:
            await connection.stop()
            raise ModelError(Failure.UNAVAILABLE, str(error)) from error
        except RpcRefusedError as error:
            await connection.stop()
            raise self._refusal(error) from error
        except BaseException:
            connection.kill(f"nobody waits for the start of {self.title} any more; it was ended")
            raise
        return connection

    async def _introduce(self, connection: AdapterConnection) -> None:
        ours = Initialize(VERSION, ClientCapabilities(), Implementation("zot", OUR_VERSION))
        theirs = await connection.call("initialize", ours, Introduction)
        if theirs.protocol_version != VERSION:
            raise AdapterError(
                f"{self.title} speaks version {theirs.protocol_version} of ACP, and zot speaks {VERSION}; update the older one"
            )
        self._abilities = theirs.agent_capabilities or ReportedCapabilities()

    async def _open(self, connection: AdapterConnection) -> None:
        """Open the agent's session: the one on record if the agent can, else a new one."""
        known = self._home.remembered
        self._cost_usd = 0.0
        if known is not None and await self._resumed(connection, known):
            return
        opened = await connection.call("session/new", NewSession(self._home.cwd, []), OpenedSession)
        if self._home.has_history:
            self._notes.append(f"{self.title} begins anew: it knows nothing of what was said before")
        await self._home.remember(opened.session_id)
        self._session = opened.session_id

    async def _resumed(self, connection: AdapterConnection, known: str) -> bool:
        sessions = self._abilities.session_capabilities
        method = "session/resume" if sessions is not None and sessions.resume is not None else "session/load"
        if method == "session/load" and not self._abilities.load_session:
            return False
        try:
            # What is replayed of the history is on record here, and comes before `_session` is set.
            await connection.call(method, OldSession(known, self._home.cwd, []), Ignored)
        except RpcRefusedError as error:
            if error.code == RpcErrorCode.AUTH:
                raise
            self._notes.append(f"{self.title} could not take up its session again: {error}")
            return False
        self._session = known
        return True

    async def _ask(self, turn: DrivenTurn, request: RpcRequest, question: PermissionRequest) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._asking[task] = request
        option: str | None = None
        try:
            option = await self._home.permit(turn, question)
        finally:  # cancelled, it is answered too: the agent waits for it
            del self._asking[task]
            self._permission(request, option)

    def _permission(self, request: RpcRequest, option: str | None) -> None:
        outcome = PermissionOutcome("cancelled") if option is None else PermissionOutcome("selected", option)
        if self._connection is not None:
            self._connection.answer(request, Permission(outcome))

    def _refuse(self, request: RpcRequest, code: RpcErrorCode, sentence: str) -> None:
        if self._connection is not None:
            self._connection.refuse(request, code, sentence)

    def _accepted(self, prompt: Sequence[ContentBlock]) -> list[ContentBlock]:
        """Return the prompt as the agent can take it."""
        can = self._abilities.prompt_capabilities
        if can is not None and can.image:
            return list(prompt)
        kept: list[ContentBlock] = [one for one in prompt if not isinstance(one, ImageBlock)]
        if len(kept) < len(prompt):
            self._notes.append(f"{self.title} takes no images; they were left out")
        return kept or [TextBlock("(an image, which was left out)")]

    def _unstarted(self, error: OSError | ValueError) -> ModelError:
        program = self.adapter.command[0]
        if isinstance(error, FileNotFoundError):
            how = f"; install it with: {self.adapter.install}" if self.adapter.install else ""
            return ModelError(Failure.UNAVAILABLE, f"{self.title} needs {program}, which is not on the PATH{how}")
        return ModelError(Failure.UNAVAILABLE, f"{program} could not be started: {error}")

    def _refusal(self, error: RpcRefusedError) -> ModelError:
        if error.code == RpcErrorCode.AUTH:
            how = f": {self.adapter.login}" if self.adapter.login else ""
            return ModelError(Failure.AUTH, f"{self.title} wants you to log in{how}; then send the prompt again")
        return ModelError(Failure.REFUSED, f"{self.title} refused: {error}")
