"""Another agent at work for one session: its process, its own session, and one turn at a time.

    begin ──> process ──> initialize ──> session/new | resume | load ──> session/prompt ──> turn
      ^                                                                                        │
      └──────── answered, or cancelled and silent for `CANCEL_S`: the process is ended <───────┘

The process stays for the next turn. When it has died, the next turn starts another one, which takes the agent's session up again if
the agent can do that. A prompt is sent once: what became of it when the process died is not known, so it is not repeated.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from zotd.adapters.agent_process import AgentProcess, SessionMemory
from zotd.adapters.catalog import Adapter
from zotd.adapters.connection import AdapterConnection, AdapterError, AdapterListener, RpcRefusedError
from zotd.adapters.offers import AgentOffers
from zotd.adapters.turn import DrivenTurn
from zotd.adapters.updates import take_update
from zotd.core.retry import Failure, ModelError
from zotd.wire.acp import (
    ContentBlock,
    ImageBlock,
    Permission,
    PermissionOutcome,
    PromptRequest,
    SessionParams,
    TextBlock,
)
from zotd.wire.acp_reports import (
    PermissionRequest,
    TurnResult,
    UpdateParams,
)
from zotd.wire.api import AgentOption, Completion
from zotd.wire.base import BadFrameError, decode
from zotd.wire.jsonrpc import RpcErrorCode, RpcRequest
from zotd.wire.plan import PlanStep

CANCEL_S = 10.0
"""How long an agent has to end a turn that was cancelled, in seconds, before its process is ended."""

ASKED = 64
"""Most permissions that an agent may wait for at once."""

log = logging.getLogger(__name__)

Connect = Callable[[AdapterListener], AdapterConnection]
"""Starts the adapter. Raises OSError and ValueError if nothing was started."""

Spawn = Callable[[str, Coroutine[object, object, None]], None]


class AgentHome(SessionMemory, Protocol):
    """What the session of ours keeps for its agent, and decides."""

    async def planned(self, steps: Sequence[PlanStep]) -> None:
        """Put the agent's plan on record."""
        ...

    async def told(self, note: str) -> None:
        """Tell people."""
        ...

    async def changed(self, option: AgentOption) -> None:
        """The agent has another value for an option now: tell people, and remember it if they have chosen one before."""
        ...

    async def chose(self, option: str, value: str) -> None:
        """Put on record what people have chosen."""
        ...

    async def permit(self, turn: DrivenTurn, request: PermissionRequest) -> str | None:
        """Return the option that is the answer; None: nobody has decided, because the turn or the question has ended."""
        ...


class OtherAgent:
    """The agent of one session."""

    def __init__(self, adapter: Callable[[], Adapter], home: AgentHome, *, connect: Connect, spawn: Spawn) -> None:
        """`adapter` returns it as the configuration has it now."""
        self.turn: DrivenTurn | None = None
        """The turn in progress."""
        self.unsent: Sequence[ContentBlock] | None = None
        """The prompt of a turn that could not begin, for whoever goes on with it."""
        self._home = home
        self._process = AgentProcess(adapter, home, lambda: connect(self))
        self._spawn = spawn
        self._offers = AgentOffers(adapter().name)
        self._cost_usd = 0.0
        """Cost of the agent's session so far, as it was told last."""
        self._asking: dict[asyncio.Task[None], RpcRequest] = {}
        """What waits for a person's decision."""
        self._quiet = asyncio.Event()
        """No turn is under way, not even one that was cancelled."""
        self._quiet.set()
        self._begins = asyncio.Lock()
        """Held while a turn begins, and while the session is copied, which must be between two turns."""

    @property
    def title(self) -> str:
        """The agent's name, for people."""
        return self._process.title

    @property
    def commands(self) -> Sequence[Completion] | None:
        """The slash commands that it offers in our session; None: it has not listed any yet."""
        return self._offers.of(self._home.remembered)

    async def begin(self, prompt: Sequence[ContentBlock]) -> tuple[DrivenTurn, list[str]]:
        """Send a prompt; returns its turn, and what people should know.

        Raises ModelError when the agent cannot be started or does not answer; nothing was sent then.
        """
        self.unsent = prompt
        async with self._begins:  # at most twice the adapter's `start_s`
            await self._quiet.wait()  # at most `CANCEL_S`
            notes: list[str] = []
            if not self._process.is_open:
                self._cost_usd = 0.0
            connection = await self._process.ready(notes)
            turn = self.turn = DrivenTurn(self.title, overrun=connection.kill)
            self.unsent = None
            self._quiet.clear()
        self._spawn(f"turn of {self.title}", self._run(connection, turn, self._accepted(prompt, notes)))
        return turn, notes

    @asynccontextmanager
    async def resting(self) -> AsyncGenerator[None, None]:
        """Begin no turn for the block, in which the agent's session is copied. Raises ModelError if it cannot be, now or ever."""
        async with self._begins:
            if self.turn is not None:
                raise ModelError(
                    Failure.UNAVAILABLE, f"{self.title} is at work; fork the session when its run has ended"
                )
            await self._quiet.wait()  # at most `CANCEL_S`
            await self._process.check_fork()
            yield

    async def copy(self) -> None:
        """Have the agent copy the session that is on record as the one to copy. Raises ModelError."""
        async with self._begins:
            await self._process.fork()

    async def options(self) -> Sequence[AgentOption]:
        """Return what people can choose; starts the process if it does not run. Raises ModelError."""
        await self._opened()
        return self._process.choices.of(self._process.session)

    async def choose(self, option: str, value: str) -> None:
        """Have the agent take another value for an option that it has. Raises ModelError; then it has not."""
        connection = await self._opened()
        try:
            changed = await self._process.choose(connection, option, value)
        except AdapterError as error:
            raise ModelError(Failure.UNAVAILABLE, str(error)) from error
        except RpcRefusedError as error:
            raise self._process.refusal(error) from error
        await self._home.chose(option, value)
        self._changed(changed)

    def end_turn(self) -> None:
        """Cancel the turn, if one is in progress: nobody follows it any more."""
        turn, self.turn = self.turn, None
        if turn is None or turn.is_over:
            return
        turn.failed(f"the turn of {self.title} was cancelled")
        for task in list(self._asking):
            task.cancel()
        if self._process.connection is not None:
            self._process.connection.notify("session/cancel", SessionParams(self._process.session))
            self._spawn(f"cancelled turn of {self.title}", self._settle(self._process.connection))

    async def stop(self) -> None:
        """End the turn and the process."""
        self.end_turn()
        if self._process.connection is not None:
            await self._process.connection.stop()

    # --- zotd.adapters.connection.AdapterListener -----------------------------------------------------------------------

    def notified(self, method: str, params: bytes) -> None:
        """Take an update of our session; others are skipped."""
        if method != "session/update":
            return
        try:
            update = decode(params, UpdateParams)
            if self._process.session in ("", update.session_id):  # commands are often listed before the session is open
                self._offers.take(update.session_id, bytes(update.update))
                self._changed(self._process.choices.take(update.session_id, bytes(update.update)))
            if update.session_id == self._process.session:
                take_update(bytes(update.update), self.turn, self)
            elif self._process.session:
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
        if question.session_id != self._process.session:
            self._refuse(request, RpcErrorCode.PARAMS, "this session is not yours to ask for")
        elif self.turn is None or len(self._asking) >= ASKED:
            self._permission(request, None)
        else:
            self._spawn(f"permission for {self.title}", self._ask(self.turn, request, question))

    def gone(self, sentence: str) -> None:
        """End what the process has left."""
        self._process.gone()
        self._cost_usd = 0.0
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

    async def _opened(self) -> AdapterConnection:
        """Open the session between two turns, if it is not; tell people what there is to know."""
        notes: list[str] = []
        async with self._begins:
            connection = await self._process.ready(notes)
        for note in notes:
            await self._home.told(note)
        return connection

    def _changed(self, options: Sequence[AgentOption]) -> None:
        for option in options:
            self._spawn(f"{option.id[:40]} of {self.title}", self._home.changed(option))

    async def _run(self, connection: AdapterConnection, turn: DrivenTurn, prompt: list[ContentBlock]) -> None:
        """Have the turn end as the agent says, or with its process."""
        try:
            params = PromptRequest(self._process.session, prompt)
            turn.answered(await connection.call("session/prompt", params, TurnResult))
            if self._home.copied_from:
                await self._home.remember(params.session_id)
        except AdapterError as error:
            turn.failed(str(error))
        except RpcRefusedError as error:
            turn.failed(self._process.refusal(error).sentence)
        finally:
            self._quiet.set()

    async def _settle(self, connection: AdapterConnection) -> None:
        try:
            async with asyncio.timeout(CANCEL_S):
                await self._quiet.wait()
        except TimeoutError:
            connection.kill(f"{self.title} did not end its turn within {CANCEL_S:g} s of being told; it was ended")

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
        if self._process.connection is not None:
            self._process.connection.answer(request, Permission(outcome))

    def _refuse(self, request: RpcRequest, code: RpcErrorCode, sentence: str) -> None:
        if self._process.connection is not None:
            self._process.connection.refuse(request, code, sentence)

    def _accepted(self, prompt: Sequence[ContentBlock], notes: list[str]) -> list[ContentBlock]:
        """Return the prompt as the agent can take it."""
        if self._process.takes_images:
            return list(prompt)
        kept: list[ContentBlock] = [one for one in prompt if not isinstance(one, ImageBlock)]
        if len(kept) < len(prompt):
            notes.append(f"{self.title} takes no images; they were left out")
        return kept or [TextBlock("(an image, which was left out)")]
