"""One extension: carries out what `core.supervision` decides about its processes.

It has no task of its own. Whatever happens (a line, an exit, a timer) is a call-back on the event loop; callers wait
with `until`.
"""

import asyncio
import logging
import os
import random
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from zotd.core import life
from zotd.core.life import ExtensionState
from zotd.core.supervision import DRAIN_S, HELLO_S, LATE, LEAVE_S, TERM_S, Supervision
from zotd.exthost import data
from zotd.exthost.calls import ExtensionCallError
from zotd.exthost.contributions import Registration, Registrations
from zotd.exthost.log import ExtensionLog
from zotd.exthost.manifest import Manifest, ReloadBy
from zotd.exthost.peer import ExtensionPeer, Tap
from zotd.exthost.process import ExtensionProcess, why_not_started
from zotd.exthost.surroundings import Surroundings, fingerprint
from zotd.exthost.vetting import Vetting
from zotd.process.fd_handover import FdHandover, Label
from zotd.wire import ext
from zotd.wire.base import encode

log = logging.getLogger(__name__)

SWAP_S = DRAIN_S + LEAVE_S + TERM_S + HELLO_S
"""Longest that a call waits for the process that follows by `replace`."""

_ProcessAction = life.Greet | life.Fail | life.DrainProcess | life.WriteShutdown | life.Signal | life.Forget


class ExtensionListener(Protocol):
    """Gets what an extension does, on the event loop."""

    def offers_changed(self) -> None:
        """Something is registered that was not, or the other way round."""
        ...

    def state_changed(self, extension: "SupervisedExtension") -> None:
        """Its state or the reason for it has changed."""
        ...

    def complained(self, extension: "SupervisedExtension", sentence: str) -> None:
        """Something is wrong with it that its author should know; goes on from its name, or is a sentence."""
        ...

    def frame(self, extension: "SupervisedExtension", peer: ExtensionPeer, frame: ext.FromExtension) -> None:
        """A frame that is neither a registration nor an answer."""
        ...


class SupervisedExtension:
    """One extension, from its first start to its stop."""

    def __init__(self, manifest: Manifest, surroundings: Surroundings, owner: ExtensionListener) -> None:
        self.manifest = manifest
        self.reason = ""
        """Goes on from the name."""
        self.serving: ExtensionPeer | None = None
        """Where new calls go."""
        self.offered: Registrations | None = None
        """What it contributes; None: nothing."""
        self.withdrawn: Registrations | None = None
        """What it contributed before it crashed; None: its next process is ready, or it has never contributed."""
        self.warning = ""
        self.was_tried = False
        """It has been ready, or has failed to be, since it was first started."""
        self.last_session: str | None = None
        """Of the newest command or tool call; where a `submit` without a session goes."""
        self.taps: dict[Tap, None] = {}
        """Told of every line, `in` (from it) or `out`; they return at once and never raise."""
        self.log = ExtensionLog(surroundings.home / "logs" / f"ext-{manifest.name}.log")
        self._surroundings = surroundings
        self._owner = owner
        self._stuck: ExtensionPeer | None = None
        self._machine = Supervision()
        self._peers: dict[int, ExtensionPeer] = {}
        self._vetting = Vetting(surroundings.vet)
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
        """A sentence about its state."""
        return f"{self.name} {self.reason}" if self.reason else f"{self.name} is {self.state}"

    # --- for the host -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start its process; returns at once."""
        self._tell(life.StartRequested())

    def begin_stop(self) -> None:
        """Begin to end all of its processes, which takes up to 3.3 s; wait for State.STOPPED."""
        self._tell(life.Stop())

    def begin_reload(self, manifest: Manifest) -> asyncio.Future[str | None]:
        """Let a new process take over. The future gets None, or a sentence about why nothing has changed."""
        self.manifest = manifest
        done: asyncio.Future[str | None] = self._loop.create_future()
        self._reloads.append(done)
        self._tell(life.Reload(replace=manifest.reload is ReloadBy.REPLACE))
        return done

    def unstick(self) -> None:
        """A tool has hung up its process: let a new one take over, for which calls wait meanwhile."""
        if self._stuck is None and self.serving is not None:
            self._stuck, self.serving = self.serving, None
            _ = self.begin_reload(self.manifest)  # nobody waits for it: its state is shown

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until this holds; it is asked after each change of the state and of what serves. Safe to cancel."""
        while not holds():
            change: asyncio.Future[None] = self._loop.create_future()
            self._watchers.append(change)
            await change

    async def available(self, within_s: float = SWAP_S) -> ExtensionPeer | None:
        """The peer for a new call, if there is one; waits for a process that is just being replaced."""
        if self.serving is None and self.offered is not None:
            try:
                async with asyncio.timeout(within_s):
                    await self.until(lambda: self.serving is not None or self.offered is None)
            except TimeoutError:
                return None
        return self.serving

    def hears(self, event: str) -> bool:
        """Whether it has subscribed to this event, and is there to hear it."""
        return self.serving is not None and self.offered is not None and event in self.offered.events

    def send(self, frame: ext.ToExtension) -> bool:
        """Send a frame, such as an event or a key for a panel; False when nobody is there to get it."""
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
        """Something happened to a process."""
        self._tell(event)

    def complained(self, sentence: str) -> None:
        """Something is wrong with what a process sends."""
        self.log.say(sentence)
        self._owner.complained(self, sentence)

    def frame(self, peer: ExtensionPeer, frame: ext.FromExtension) -> None:
        """Handle a frame from a process."""
        if self._machine.awaits_ready(peer.number):
            self._heard(peer, frame)
        if peer.number not in self._peers:
            return
        match frame:
            case ext.Unregister(kind="channel"):
                self._owner.frame(self, peer, frame)
            case ext.RegisterTool() | ext.RegisterCommand() | ext.Subscribe() | ext.Unregister():
                self._register(peer, frame)
            case ext.Hello() | ext.Ready() | ext.ShutdownAck() | ext.ToolProgress():
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
        """Hand an event to the machine. What is carried out may itself be an event, which then waits its turn."""
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
                self.withdrawn = self.withdrawn or self.offered  # a crash before `ready`: less is offered than before
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
                    self.serving = self._stuck  # better than none
                self._stuck = None
                self._changed()
                self._end_reloads(None if error is None else f"{self.name} {error}")
            case _:
                peer = self._peers.get(action.process)
                if peer is not None:  # it may have failed to start
                    self._command(peer, action)
                elif isinstance(action, life.WriteShutdown | life.Signal) and self._vetting.give_up(action.process):
                    self._tell(life.Exited(action.process, "was stopped"))

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
        """Start it at once, or, if a person had to trust its code, when that was looked at again."""
        handover = self._handover(number, self._surroundings.named(self.manifest))
        if self.manifest.granted and (handover is None or handover.survivor is None):
            self._vetting.before(number, self.manifest, partial(self._passed, number, handover))
        else:
            self._launch(number, handover)

    def _passed(self, number: int, handover: FdHandover | None, fault: str | None) -> None:
        """Its code was looked at before its process starts."""
        if fault is None:
            self._launch(number, handover)
        else:
            self.log.say(fault)
            self._tell(life.Exited(number, fault))

    def _greeted(self, number: int, fault: str | None) -> None:
        """Its code was looked at after its process had read it."""
        if fault is not None and number in self._peers:
            self._tell(life.Broke(number, fault))

    def _launch(self, number: int, handover: FdHandover | None) -> None:
        manifest, surroundings = self.manifest, self._surroundings
        env = {**surroundings.env, **surroundings.named(manifest)}
        reaper = surroundings.reaper
        try:
            peer = ExtensionPeer(
                number,
                secrets.token_hex(4),
                owner=self,
                start=lambda listener: ExtensionProcess(
                    manifest.argv,
                    cwd=str(manifest.directory),
                    env=env,
                    listener=listener,
                    log=self.log,
                    claim=reaper.claim(f"extension {self.name}", surroundings.sessions, handover) if reaper else None,
                ),
                handover=handover,
            )
            peer.calls.is_patient = manifest.is_patient
        except (OSError, ValueError) as error:
            reason = why_not_started(error, manifest.argv)
            self.log.say(reason)
            self._tell(life.Exited(number, reason))
        else:
            self._peers[number] = peer
            self._registrations[number] = Registrations()
            peer.relive()

    def _handover(self, number: int, env: Mapping[str, str]) -> FdHandover | None:
        """For the process that is to start, which may be one that already runs."""
        where = self._surroundings
        if where.handover_store is None:
            return None
        label = Label(where.place, self.name, fingerprint(self.manifest, env, where.version))
        handover = where.handover_store.handover(label)
        handover.condensed = partial(self._condensed, number)
        return handover

    def _condensed(self, number: int) -> list[bytes]:
        """What a process has told that still counts."""
        frames = [*self._peers[number].lasting(), *self._registrations[number].frames()]
        return [encode(frame) for frame in frames]

    def _dismiss(self, peer: ExtensionPeer, number: int) -> None:
        """Have it leave, or leave it to the daemon that follows."""
        handover_store = self._surroundings.handover_store
        if handover_store is not None and handover_store.leaves(peer.handover):
            peer.process.let_go()
            self._tell(life.Exited(number, "was handed over to the next daemon"))
        else:
            peer.shut_down()

    def _greet(self, peer: ExtensionPeer) -> None:
        if peer.is_adopted:
            return  # it was greeted by who has started it
        where = self._surroundings
        directory = str(self.manifest.directory)
        ack = ext.HelloAck(
            protocol_version=ext.PROTOCOL_VERSION,
            zot_version=where.version,
            provider=where.provider,
            model=where.model,
            cwd=_text(where.cwd),
            extension_dir=_text(directory),
            data_dir=_text(data.made(self.manifest, where, self.log.say)),
            capabilities=(ext.CALL_TOOL,) if peer.can(ext.CALL_TOOL) else (),
            features=where.features,
        )
        peer.send(ack)

    def _changed(self) -> None:
        serving = self.serving
        if serving is not None and serving.handover is not None and not self._machine.awaits_ready(serving.number):
            serving.handover.ready()
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


def _text(path: str) -> str:
    """A path as JSON can carry it; a file name need not be UTF-8."""
    return os.fsencode(path).decode(errors="replace")
