"""One extension: executes the decisions of `core.supervision` about its processes.

An extension has no task. Every event (a line, an exit, a timer) is a callback on the event loop; callers wait with
`until`.
"""

import asyncio
import logging
import random
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from zotd.core import life
from zotd.core.life import ExtensionState
from zotd.core.supervision import DRAIN_S, HELLO_S, LATE, LEAVE_S, TERM_S, Supervision
from zotd.exthost.bridge_host import BridgeHost
from zotd.exthost.calls import ExtensionCallError
from zotd.exthost.contributions import Registration, Registrations
from zotd.exthost.greeting import hello_ack
from zotd.exthost.launch import Launches, StartProcess
from zotd.exthost.log import ExtensionLog
from zotd.exthost.manifest import Manifest, ReloadBy
from zotd.exthost.peer import ExtensionPeer, Tap
from zotd.exthost.process import why_not_started
from zotd.exthost.surroundings import Surroundings, fingerprint
from zotd.exthost.vetting import Vetting
from zotd.process.fd_handover import FdHandover, Label
from zotd.wire import ext
from zotd.wire.base import encode

log = logging.getLogger(__name__)

SWAP_S = DRAIN_S + LEAVE_S + TERM_S + HELLO_S
"""Longest time that a call waits for the new process of a reload by `replace`."""

_ProcessAction = life.Greet | life.Fail | life.DrainProcess | life.WriteShutdown | life.Signal | life.Forget


class ExtensionListener(Protocol):
    """Receives the events of an extension, on the event loop."""

    def offers_changed(self) -> None:
        """Registrations were added or removed."""
        ...

    def state_changed(self, extension: "SupervisedExtension") -> None:
        """The state or its reason has changed."""
        ...

    def complained(self, extension: "SupervisedExtension", sentence: str) -> None:
        """Report a fault to the author: a sentence, or one that continues the extension's name."""
        ...

    def frame(self, extension: "SupervisedExtension", peer: ExtensionPeer, frame: ext.FromExtension) -> None:
        """Handle a frame that is neither a registration nor an answer."""
        ...


class SupervisedExtension:
    """One extension, from its first start to its stop."""

    def __init__(
        self, manifest: Manifest, surroundings: Surroundings, owner: ExtensionListener, bridges: BridgeHost
    ) -> None:
        self.manifest = manifest
        self.reason = ""
        """Reason for the state; continues a sentence that begins with the name."""
        self.serving: ExtensionPeer | None = None
        """The process that gets new calls."""
        self.offered: Registrations | None = None
        """Its registrations while it serves, else None."""
        self.withdrawn: Registrations | None = None
        """Its registrations before a crash, until the next process is ready."""
        self.warning = ""
        self.was_tried = False
        """Its first start has succeeded or failed."""
        self.last_session: str | None = None
        """Session of the newest command or tool call; gets a `submit` without a session."""
        self.taps: dict[Tap, None] = {}
        """Called with every line, `in` (from the extension) or `out`. They return at once and never raise."""
        self.log = ExtensionLog(surroundings.home / "logs" / f"ext-{manifest.name}.log")
        self._surroundings = surroundings
        self._owner = owner
        self._stuck: ExtensionPeer | None = None
        self._machine = Supervision()
        self._peers: dict[int, ExtensionPeer] = {}
        self._vetting = Vetting(surroundings.vet)
        self._launches = Launches(surroundings, self.log, bridges)
        self._registrations: dict[int, Registrations] = {}
        self._inbox: deque[life.Input] = deque()
        self._is_busy = False
        self._timer: asyncio.TimerHandle | None = None
        self._watchers: list[asyncio.Future[None]] = []
        self._reloads: list[asyncio.Future[str | None]] = []
        self._loop = asyncio.get_running_loop()

    @property
    def name(self) -> str:
        """Name of the extension, from its manifest."""
        return self.manifest.name

    @property
    def state(self) -> ExtensionState:
        """State as shown to users."""
        return self._machine.state

    @property
    def condition(self) -> str:
        """One sentence about the state."""
        return f"{self.name} {self.reason}" if self.reason else f"{self.name} is {self.state}"

    # --- for the host -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start its process; returns at once."""
        self._tell(life.StartRequested())

    def begin_stop(self) -> None:
        """Begin to stop all its processes, which takes up to 3.3 s; wait for ExtensionState.STOPPED."""
        self._tell(life.Stop())

    def begin_reload(self, manifest: Manifest) -> asyncio.Future[str | None]:
        """Start a new process that takes over. The future gets None, or a sentence that says why the old one stays."""
        self.manifest = manifest
        done: asyncio.Future[str | None] = self._loop.create_future()
        self._reloads.append(done)
        self._tell(life.Reload(replace=manifest.reload is ReloadBy.REPLACE))
        return done

    def unstick(self) -> None:
        """Replace a process in which a tool hangs; new calls wait for its successor."""
        if self._stuck is None and self.serving is not None:
            self._stuck, self.serving = self.serving, None
            _ = self.begin_reload(self.manifest)  # the result is shown as the state of the extension

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds` returns True; it is called after each change of state or registrations. Safe to cancel."""
        while not holds():
            change: asyncio.Future[None] = self._loop.create_future()
            self._watchers.append(change)
            await change

    async def available(self, within_s: float = SWAP_S, *, session: str | None = None) -> ExtensionPeer | None:
        """Return the process for a new call, or None. Waits while a process is being replaced.

        A `submit` that the process then sends without a session belongs to `session`.
        """
        if self.serving is None and self.offered is not None:
            try:
                async with asyncio.timeout(within_s):
                    await self.until(lambda: self.serving is not None or self.offered is None)
            except TimeoutError:
                return None
        if self.serving is not None and session is not None:
            self.last_session = session
        return self.serving

    def hears(self, event: str) -> bool:
        """Return True if it serves and has subscribed to this event."""
        return self.serving is not None and self.offered is not None and event in self.offered.events

    def send(self, frame: ext.ToExtension) -> bool:
        """Send a frame that expects no answer; return False if no process serves or its queue is full."""
        if self.serving is None:
            return False
        try:
            self.serving.send(frame)
        except ExtensionCallError as error:
            log.warning("a frame was dropped: %s %s", self.name, error)
            return False
        return True

    # --- exthost.peer.PeerListener ------------------------------------------------------------------------------------

    def happened(self, event: life.FromProcess) -> None:
        """Pass an event of a process to the state machine."""
        self._tell(event)

    def complained(self, sentence: str) -> None:
        """Log a fault in a process's output and report it to the owner."""
        self.log.say(sentence)
        self._owner.complained(self, sentence)

    def frame(self, peer: ExtensionPeer, frame: ext.FromExtension) -> None:
        """Handle a frame from a process."""
        if self._machine.awaits_ready(peer.number):
            self._heard(peer, frame)
        # The state machine may just have ended the process because of this frame.
        if peer.number not in self._peers:
            return
        match frame:
            case ext.Unregister(kind="channel"):
                self._owner.frame(self, peer, frame)
            case ext.RegisterTool() | ext.RegisterCommand() | ext.Subscribe() | ext.Unregister():
                self._register(peer, frame)
            case ext.Instructions() | ext.Mentions():
                self._register(peer, frame)
            case ext.Hello() | ext.Ready() | ext.ShutdownAck() | ext.ToolProgress() | ext.AskUser() | ext.AskModel():
                return
            case ext.ToolResult() | ext.CommandResponse() | ext.EventInterceptResponse():
                return
            case _:
                self._owner.frame(self, peer, frame)

    def _heard(self, peer: ExtensionPeer, frame: ext.FromExtension) -> None:
        if not isinstance(frame, ext.Hello):
            self._tell(life.FrameReceived(peer.number, str(frame.__struct_config__.tag)))
            return
        self._tell(life.Greeted(peer.number, frame.name, says_ready="ready" in frame.capabilities))
        if self.manifest.granted and not peer.is_adopted:
            self._vetting.look(self.manifest, partial(self._greeted, peer.number))
        if frame.name != self.name:
            self.warning = f'it calls itself "{frame.name[:80]}" in its hello; the manifest\'s name is used'
            self.complained(self.warning)

    def _register(self, peer: ExtensionPeer, frame: Registration) -> None:
        registrations = self._registrations[peer.number]
        fault = registrations.take(frame)
        if fault is not None:
            peer.complain(fault[:100], fault)
        if registrations is self.offered:
            self._owner.offers_changed()

    # --- carrying out -----------------------------------------------------------------------------------------

    def _tell(self, event: life.Input) -> None:
        """Pass an event to the state machine and carry out its actions.

        An action may cause another event. That is queued, so that the machine is never entered recursively.
        """
        self._inbox.append(event)
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._inbox:
                now, chance = self._loop.time(), random.random()  # noqa: S311  (spreads restarts; no secret)
                for action in self._machine.receive(self._inbox.popleft(), now=now, random=chance):
                    self._carry_out(action)
        finally:
            self._is_busy = False
        self._arm()

    def _carry_out(self, action: life.Action) -> None:
        match action:
            case life.Spawn(number):
                self._spawn(number)
            case life.Serve(number):
                self.serving, self.offered = self._peers[number], self._registrations[number]
                self._changed()
            case life.Withdraw():
                self.withdrawn = (
                    self.withdrawn or self.offered
                )  # a crash before `ready` must not overwrite the fuller list
                self.serving = self.offered = None
                self._changed()
            case life.Show(state, reason):
                self.reason = reason
                if state is ExtensionState.READY and reason != LATE:
                    self.withdrawn = None
                self.was_tried |= state is not ExtensionState.STARTING
                log.info("extension %s is %s%s", self.name, state, f": it {reason}" if reason else "")
                self._owner.state_changed(self)
                self._changed()
            case life.ReloadsDone(error):
                if error is not None and self.serving is None and self._stuck in self._peers.values():
                    self.serving = self._stuck  # a hanging tool still leaves the others usable
                self._stuck = None
                self._changed()
                self._end_reloads(None if error is None else f"{self.name} {error}")
            case _:
                peer = self._peers.get(action.process)
                if peer is not None:  # missing if it failed to start
                    self._command(peer, action)
                # A process that is still to start has no peer yet; the machine is told that it ended.
                elif isinstance(action, life.WriteShutdown | life.Signal) and self._gave_up(action.process):
                    self._tell(life.Exited(action.process, "was stopped"))

    def _gave_up(self, number: int) -> bool:
        return self._vetting.give_up(number) or self._launches.give_up(number)

    def _command(self, peer: ExtensionPeer, action: _ProcessAction) -> None:
        match action:
            case life.Greet():
                self._greet(peer)
            case life.Fail(_, reason):
                peer.fail(reason)
            case life.DrainProcess():
                if self.serving is peer:
                    self.serving = None
                peer.drain()
            case life.WriteShutdown(number):
                self._dismiss(peer, number)
            case life.Signal(_, kill):
                peer.process.end(kill=kill)
            case life.Forget(number):
                del self._peers[number], self._registrations[number]
                if not self._peers:
                    self.log.close()

    def _spawn(self, number: int) -> None:
        """Start a process; code that needs trust is checked again first."""
        handover = self._handover(number, self._surroundings.named(self.manifest))
        # A process that survived the last daemon runs code that has been checked when it was started.
        if self.manifest.granted and (handover is None or handover.survivor is None):
            self._vetting.before(number, self.manifest, partial(self._passed, number, handover))
        else:
            self._launch(number, handover)

    def _passed(self, number: int, handover: FdHandover | None, fault: str | None) -> None:
        """Continue after the check of its code before the start."""
        if fault is None:
            self._launch(number, handover)
        else:
            self._not_started(number, fault)

    def _not_started(self, number: int, reason: str) -> None:
        self.log.say(reason)
        if not self._peers:  # else the file would stay open until the extension is started again, which may be never
            self.log.close()
        self._tell(life.Exited(number, reason))

    def _greeted(self, number: int, fault: str | None) -> None:
        """End the process if its code changed between the check and the moment it was read."""
        if fault is not None and number in self._peers:
            self._tell(life.Broke(number, fault))

    def _launch(self, number: int, handover: FdHandover | None) -> None:
        self._launches.launch(number, self.manifest, handover, partial(self._begin, number, handover))

    def _begin(self, number: int, handover: FdHandover | None, start: StartProcess) -> None:
        manifest = self.manifest
        try:
            label, is_patient = secrets.token_hex(4), manifest.is_patient
            peer = ExtensionPeer(number, label, owner=self, start=start, handover=handover, is_patient=is_patient)
        except (OSError, ValueError) as error:
            self._not_started(number, why_not_started(error, manifest.argv))
        else:
            self._peers[number] = peer
            self._registrations[number] = Registrations()
            # Registered above, because replayed frames are handled like new ones and look the process up.
            peer.relive()

    def _handover(self, number: int, env: Mapping[str, str]) -> FdHandover | None:
        """Return the handover for a process that is to start, which may already run."""
        where = self._surroundings
        if where.handover_store is None or self.manifest.ends_with_daemon:
            return None
        label = Label(where.place, self.name, fingerprint(self.manifest, env, where.version))
        # Called when the recorded frames grow too long: only those that still matter are kept.
        return where.handover_store.handover(label, condensed=partial(self._condensed, number))

    def _condensed(self, number: int) -> list[bytes]:
        """Return the frames of a process that are still in effect."""
        frames = [*self._peers[number].lasting(), *self._registrations[number].frames()]
        return [encode(frame) for frame in frames]

    def _dismiss(self, peer: ExtensionPeer, number: int) -> None:
        """End the process, or leave it to the next daemon."""
        handover_store = self._surroundings.handover_store
        if handover_store is not None and handover_store.leaves(peer.handover):
            peer.process.let_go()
            self._tell(life.Exited(number, "was handed over to the next daemon"))
        else:
            peer.shut_down()

    def _greet(self, peer: ExtensionPeer) -> None:
        if peer.is_adopted:
            return  # the daemon that started it has sent the ack
        can_call = peer.can(ext.CALL_TOOL)
        peer.send(hello_ack(self.manifest, self._surroundings, can_call_tools=can_call, say=self.log.say))

    def _changed(self) -> None:
        serving = self.serving
        if serving is not None and serving.handover is not None and not self._machine.awaits_ready(serving.number):
            # Only a process that was ready is worth adopting; an earlier one is ended by the next daemon.
            serving.handover.ready()
        # The owner first: who waits in `until` should see the new contributions.
        self._owner.offers_changed()
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            if not watcher.done():
                watcher.set_result(None)

    def _end_reloads(self, error: str | None) -> None:
        reloads, self._reloads = self._reloads, []
        for done in reloads:
            if not done.done():
                done.set_result(error)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        due = self._machine.wake_at
        self._timer = None if due is None else self._loop.call_at(due, self._tell, life.Tick())
