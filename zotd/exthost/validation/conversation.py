"""The host's side of the protocol for a process that is being checked; records everything and uses nothing.

The daemon's own `ExtensionPeer` reads the lines, so a validation reports the same faults as the daemon.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Self

from zotd.core import life
from zotd.core.supervision import EXIT_S, HELLO_S, KILL_S, LEAVE_S, QUIET_S, READY_S
from zotd.exthost.calls import Answer, ExtensionCallError
from zotd.exthost.contributions import Registrations
from zotd.exthost.jails import ConfinementError
from zotd.exthost.launch import confined_argv
from zotd.exthost.log import ExtensionLog
from zotd.exthost.manifest import DataPlace, Manifest
from zotd.exthost.peer import ExtensionPeer, Tap
from zotd.exthost.process import ExtensionProcess, ProcessListener, why_not_started
from zotd.exthost.surroundings import Surroundings
from zotd.process import Service, start_service
from zotd.process.service import ServiceListener
from zotd.wire import ext
from zotd.wire.base import encode


class GoneError(Exception):
    """The process has ended or violates the protocol; the message continues its name."""


class ProbedProcess:
    """A process as a context manager. Leaving the block kills its process group."""

    def __init__(
        self, manifest: Manifest, surroundings: Surroundings, log: ExtensionLog, extra: Mapping[str, object]
    ) -> None:
        """Prepare a process. `log` gets its stderr; `extra` fields are added to every frame to it."""
        self.registrations = Registrations()
        self.refused: list[str] = []
        """A sentence for each refused registration."""
        self.complaints: list[str] = []
        """Faults in its output; they continue its name."""
        self.module_errors: dict[str, str] = {}
        """Errors by module file; an empty one is fixed."""
        self.taps: dict[Tap, None] = {}
        self.has_said_ready = False
        self.exit = ""
        """How it has ended, once it has; continues its name."""
        self._manifest = manifest
        self._surroundings = surroundings
        self._log = log
        self._extra = extra
        self._first: ext.FromExtension | None = None
        self._gone = ""
        self._heard = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def __aenter__(self) -> Self:
        """Start the process.

        Raises:
            GoneError: the process cannot be started.
        """
        manifest, surroundings = self._manifest, self._surroundings
        try:
            argv = await confined_argv(manifest, surroundings, self._log.say)
        except ConfinementError as error:
            raise GoneError(str(error)) from error

        def start(listener: ProcessListener) -> ExtensionProcess:
            def begin(service: ServiceListener) -> Service:
                return start_service(argv, cwd=str(manifest.directory), env=surroundings.env, listener=service)

            return ExtensionProcess(begin, listener=listener, log=self._log)

        try:
            self._peer = ExtensionPeer(1, "question", owner=self, start=start)
        except (OSError, ValueError) as error:
            raise GoneError(why_not_started(error, manifest.argv)) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        self._peer.process.end(kill=True)
        await self._within(KILL_S, lambda: bool(self.exit))
        self._log.close()

    # --- what is done with it ---------------------------------------------------------------------------------

    @property
    def dropped(self) -> int:
        """Number of unexpected or repeated answers."""
        return self._peer.calls.dropped.late + self._peer.calls.dropped.unknown

    def can(self, capability: str) -> bool:
        """Return True if its `hello` announced this capability."""
        return self._peer.can(capability)

    async def greet(self) -> str:
        """Wait for its `hello`, which is answered at once; return the name in it.

        Raises:
            GoneError: the first frame is missing or another one.
        """
        if not await self._within(HELLO_S, lambda: self._first is not None or bool(self._gone)):
            raise GoneError(f"sent no hello within {HELLO_S:g} s")
        match self._first:
            case ext.Hello(""):
                raise GoneError("sent a hello without a name")
            case ext.Hello(name):
                return name
            case None:
                raise GoneError(self._gone)
            case _:
                raise GoneError(f"began with `{self._first.__struct_config__.tag}` instead of `hello`")

    async def settle(self) -> bool:
        """Wait for `ready` or the silence that counts as `ready`; return False if neither comes in time.

        Raises:
            GoneError: the process has ended before.
        """
        try:
            async with asyncio.timeout(READY_S):
                await self._fall_silent()
        except TimeoutError:
            return False
        return True

    async def until(self, holds: Callable[[], bool], limit_s: float) -> bool:
        """Wait until `holds` returns True, looking again after each frame; return False on a timeout.

        Raises:
            GoneError: the process has ended before.
        """
        await self._within(limit_s, lambda: holds() or bool(self._gone))
        if not holds():
            self._check()
        return holds()

    async def stay(self) -> None:
        """Wait a moment and check that the process still runs.

        Raises:
            GoneError: the process has ended.
        """
        await self._within(QUIET_S, lambda: bool(self._gone))
        self._check()

    def send(self, frame: Mapping[str, object]) -> None:
        """Send a frame, which may be invalid on purpose."""
        # ensure_ascii=False sends U+2028 and the like unescaped, which some line readers split at.
        line = json.dumps({**frame, **self._extra}, ensure_ascii=False)
        self._peer.process.write(line.encode(errors="replace"))  # a file name need not be Unicode

    async def ask(self, kind: type[Answer], question: Mapping[str, object], limit_s: float | None) -> Answer:
        """Send a frame with a new `id` and wait for the answer.

        Raises:
            CallError: there is no answer, or it is invalid.
        """
        if self._gone:
            raise ExtensionCallError(self._gone)
        return await self._peer.calls.call(kind, lambda key: self.send({**question, "id": key}), limit_s=limit_s)

    async def leave(self) -> str:
        """Send `shutdown` and close its stdin; return how it ended, empty if it did not within 2 s."""
        self.send({"type": "shutdown"})
        self._peer.process.end_input()
        await self._within(LEAVE_S, lambda: bool(self.exit))
        return self.exit

    # --- what it does (exthost.peer.PeerListener) --------------------------------------------------------------------

    def frame(self, peer: ExtensionPeer, frame: ext.FromExtension) -> None:  # noqa: ARG002  (there is only one)
        """Record a frame; answer the first one if it is a `hello`."""
        if self._first is None:
            self._first = frame
            if isinstance(frame, ext.Hello):
                self.send(self._hello_ack())
        match frame:
            case ext.RegisterTool() | ext.RegisterCommand() | ext.Subscribe() | ext.Unregister() | ext.Instructions():
                fault = self.registrations.take(frame)
                self.refused += [fault] if fault else []
            case ext.ModuleError(file, error):
                self.module_errors[file] = error
            case ext.Ready():
                self.has_said_ready = True
            case _:
                pass  # valid frames of other kinds are not checked
        self._heard.set()

    def complained(self, sentence: str) -> None:
        """Record a fault in its output."""
        self.complaints.append(sentence)

    def happened(self, event: life.FromProcess) -> None:
        """Record the end of the process."""
        match event:
            case life.Exited(_, reason):
                self.exit = reason
                self._lose(reason)
            case life.Broke(_, reason):
                self._lose(reason)
            case life.Closed(_, pipe):  # usually precedes the exit, whose reason is better
                self._loop.call_later(EXIT_S, self._lose, f"closed its {pipe} without exiting")
            case _:
                pass

    # --- details ----------------------------------------------------------------------------------------------

    def _lose(self, reason: str) -> None:
        self._gone = self._gone or reason
        self._peer.calls.fail_all(self._gone)
        self._heard.set()

    def _check(self) -> None:
        if self._gone:
            raise GoneError(self._gone)

    async def _fall_silent(self) -> None:
        while not self.has_said_ready:
            self._check()
            if await self._is_quiet():
                return

    async def _is_quiet(self) -> bool:
        """Wait for the next frame; return True if none comes."""
        self._heard.clear()
        try:
            async with asyncio.timeout(QUIET_S):
                await self._heard.wait()
        except TimeoutError:
            return True
        return False

    async def _within(self, limit_s: float, holds: Callable[[], bool]) -> bool:
        """Wait until `holds` returns True; return False on a timeout."""
        try:
            async with asyncio.timeout(limit_s):
                while not holds():
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            return False
        return True

    def _hello_ack(self) -> dict[str, object]:
        where, directory = self._surroundings, self._manifest.directory
        is_beside = self._manifest.data is DataPlace.BESIDE  # as with `--ext`
        ack = ext.HelloAck(
            protocol_version=ext.PROTOCOL_VERSION,
            zot_version=where.version,
            provider=where.provider,
            model=where.model,
            cwd=where.cwd,
            extension_dir=str(directory),
            data_dir=str(directory if is_beside else where.home),
            capabilities=(),
            features=where.features,
        )
        fields: dict[str, object] = json.loads(encode(ack))
        return fields
