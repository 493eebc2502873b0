"""One process of an extension, and the frames to and from it.

    call ──> Calls ──> stdin ──> the process ──> stdout ──> Process ──> Calls ──> the caller's answer
                                                               └──> `PeerListener.frame`, in the order they were sent

It knows the protocol and nothing of why a process lives or dies: that it tells its owner, in the words of
`core.life`, and is told.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from zotd.core import life
from zotd.core.ports import Ancestor
from zotd.exthost.calls import Answer, Calls, ExtensionCallError, PendingCall
from zotd.exthost.process import ExtensionProcess, ProcessListener
from zotd.exthost.requests import ID_CHARS, MAX_OPEN, Requests
from zotd.process.fd_handover import FdHandover
from zotd.wire import ext
from zotd.wire.base import encode
from zotd.wire.framing import SERVER_LIMIT

Tap = Callable[[str, bytes], None]

COMPLAINTS = 100
"""Kinds of faults that people are told about; a program that errs in more ways is known well enough."""

LASTING = (ext.Hello, ext.RegisterTool, ext.RegisterCommand, ext.Subscribe, ext.Unregister, ext.ModuleError)
"""What the next daemon has to know of what was sent."""

LOST = "zotd was restarted meanwhile, and the outcome of this call is unknown"

_ID = re.compile(rb'"id"\s*:\s*"([^"\\]{1,80})"')


class PeerListener(Protocol):
    """Gets what a peer does, on the event loop."""

    taps: dict[Tap, None]
    """Told of every line, `in` or `out`, before anything is done about it; they return at once and never raise."""

    def frame(self, peer: "ExtensionPeer", frame: ext.FromExtension) -> None:
        """Every frame, in order; an answer just before its caller gets it."""
        ...

    def complained(self, sentence: str) -> None:
        """Something is wrong with what it sends; goes on from its name, or is a sentence."""
        ...

    def happened(self, event: life.FromProcess) -> None:
        """Something about the process that supervision has to know; `Exited` comes once, and nothing after it."""
        ...


@dataclass(slots=True)
class SkippedLines:
    """Lines that were skipped; shown by `doctor`."""

    stray: int = 0
    unknown: int = 0
    bad: int = 0
    too_long: int = 0


class ExtensionPeer:
    """A process that speaks the protocol."""

    def __init__(
        self,
        number: int,
        label: str,
        *,
        owner: PeerListener,
        start: Callable[[ProcessListener], ExtensionProcess],
        handover: FdHandover | None = None,
    ) -> None:
        """Start the process numbered `number` in `core.supervision`; raises what `start` raises.

        `label` makes the ids of its calls unlike any other process's. `handover`: where to note what it sends for the
        next daemon. When that has a survivor, `relive` is the first thing to be called.
        """
        self.number = number
        self.hello: ext.Hello | None = None
        self.counts = SkippedLines()
        self.calls = Calls(label, idle=self._idle, given_up=self._given_up)
        self.requests = Requests(self.calls, self._reply)
        self._label = label
        self._owner = owner
        self._is_draining = False
        self._asked: dict[str, ext.CallTool] = {}
        """What it has asked for and was not answered, without the arguments."""
        self._complaints: set[str] = set()
        self.handover = handover
        self.is_adopted = handover is not None and handover.survivor is not None
        """An earlier daemon has started it, and knows it."""
        self._is_at_border = self.is_adopted
        """The next line may be the end of one whose beginning that daemon has read."""
        self.process = start(self)

    # --- to the process ---------------------------------------------------------------------------------------

    def can(self, capability: str) -> bool:
        """Whether it announced this in its `hello`."""
        return self.hello is not None and capability in self.hello.capabilities

    def send(self, frame: ext.ToExtension) -> None:
        """Write a frame behind all earlier ones; never blocks.

        Raises:
            CallError: it is over 4 MiB, and nothing was written.
        """
        line = encode(frame)
        if len(line) > SERVER_LIMIT:
            raise ExtensionCallError("cannot be sent more than 4 MiB at once")
        self._tap("out", line)
        self.process.write(line)

    async def call(
        self,
        kind: type[Answer],
        frame: Callable[[str], ext.ToExtension],
        *,
        limit_s: float | None,
        session: str | None = None,
        progress: Callable[[str], None] | None = None,
        lineage: tuple[Ancestor, ...] = (),
        cwd: str | None = None,
    ) -> Answer:
        """Send the frame made with a new id and wait: see `Calls.call`.

        A tool call that is cancelled or timed out is followed by `tool_cancel`, if the extension knows it.
        """
        if not len(self.calls):
            self.process.forget_last_words()  # they are of a call that has ended, and explain no crash of this one
        return await self.calls.call(
            kind,
            lambda key: self.send(frame(key)),
            limit_s=limit_s,
            session=session,
            progress=progress,
            lineage=lineage,
            cwd=cwd,
        )

    def fail(self, reason: str) -> None:
        """Fail every open call, and give up what the process has asked for: it is gone, or is to go."""
        self.calls.fail_all(reason)
        self.requests.close()

    def drain(self) -> None:
        """Tell `Drained` as soon as no call is open."""
        self._is_draining = True
        self._disown()  # another one has taken over
        if not len(self.calls):
            self._idle()

    def complain(self, kind: str, sentence: str) -> None:
        """Tell the extension's author about a fault, once for each kind."""
        if kind not in self._complaints and len(self._complaints) < COMPLAINTS:
            self._complaints.add(kind)
            self._owner.complained(sentence)

    def shut_down(self) -> None:
        """Send `shutdown` and close its stdin, which asks the process to exit."""
        self._disown()  # and its stdin has no other end that would stay open
        self.send(ext.Shutdown())
        self.process.end_input()

    def relive(self) -> None:
        """Hear once more what it had told the daemon before; nothing when it was started by us."""
        survivor = self.handover.survivor if self.handover else None
        if survivor is None:
            return
        for frame in map(ext.read, survivor.lines):
            match frame:
                case ext.Skipped():
                    continue
                case ext.CallTool():
                    self._asked[frame.id] = frame
                case ext.CallToolCancel():  # noted when it was answered
                    self._asked.pop(frame.id, None)
                case _:
                    self._heard(frame)
        self._heard(ext.Ready())
        survivor.lines.clear()
        for request in list(self._asked.values()):
            self._reply(ext.ToolAnswer(request.id, request.name, ({"type": "text", "text": LOST},), is_error=True))

    def lasting(self) -> list[ext.FromExtension]:
        """What the next daemon has to know of it, besides its registrations."""
        return [*([self.hello] if self.hello is not None else []), *self._asked.values()]

    # --- from the process (exthost.process.ProcessListener) ----------------------------------------------------------

    def line(self, line: bytes) -> bool:
        """A line of its stdout; whether it was the answer to a call."""
        is_at_border, self._is_at_border = self._is_at_border, False
        frame = ext.read(line)
        if is_at_border and isinstance(frame, ext.Skipped):
            return False
        self._tap("in", line)
        if isinstance(frame, ext.Skipped):
            return self._skipped(frame)
        self._keep(line, frame)
        if self.is_adopted and isinstance(frame, Answer) and not frame.id.startswith(self._label):
            return False  # to a call of the daemon before
        self._heard(frame)
        if isinstance(frame, ext.ToolProgress):
            self.calls.progress(frame)
        return isinstance(frame, Answer) and self.calls.answered(frame)

    def too_long(self, head: bytes) -> None:
        """A line over 4 MiB was skipped; whoever waits for it should not wait for its timeout."""
        if self._is_at_border:
            self._is_at_border = False
            return
        self.counts.too_long += 1
        self.complain("too long", "wrote a line over 4 MiB, which was skipped")
        found = _ID.search(head)
        key = found[1].decode(errors="replace") if found else ""
        if not self.calls.reject(key, "answered with a result over 4 MiB"):
            self.calls.reject_only("answered with a result over 4 MiB")

    def closed(self, pipe: str) -> None:
        """Report that the process has closed its stdin or stdout."""
        self._owner.happened(life.Closed(self.number, pipe))

    def stalled(self, reason: str) -> None:
        """Report that the process does not read its stdin."""
        self._owner.happened(life.Broke(self.number, reason))

    def exited(self, reason: str) -> None:
        """Report that the process has exited."""
        self._owner.happened(life.Exited(self.number, reason))

    # --- details ----------------------------------------------------------------------------------------------

    def _disown(self) -> None:
        """The next daemon is not to go on with it."""
        if self.handover is not None:
            self.handover.end()

    def _keep(self, line: bytes, frame: ext.FromExtension) -> None:
        """Note it for the next daemon."""
        if self.handover is None:
            return
        if isinstance(frame, LASTING):
            self.handover.record(line)
        elif isinstance(frame, ext.CallTool) and frame.id not in self._asked and len(self._asked) < MAX_OPEN:
            self._asked[frame.id] = ext.CallTool(frame.id, frame.name[:ID_CHARS])
            self.handover.record(encode(self._asked[frame.id]))

    def _reply(self, answer: ext.ToolAnswer) -> None:
        """Answer what it has asked for."""
        if self.handover is not None and self._asked.pop(answer.id, None) is not None:
            self.handover.record(encode(ext.CallToolCancel(answer.id)))
        self.send(answer)

    def _heard(self, frame: ext.FromExtension) -> None:
        if isinstance(frame, ext.Hello) and self.hello is None:
            self.hello = frame
        self._owner.frame(self, frame)

    def _tap(self, direction: str, line: bytes) -> None:
        for tap in list(self._owner.taps):
            tap(direction, line)

    def _skipped(self, line: ext.Skipped) -> bool:
        match line.fault:
            case ext.Fault.STRAY:
                self.counts.stray += 1
                self.complain("stray", f"wrote a line that is not a frame and is skipped: {line.sentence}")
                return False
            case ext.Fault.UNKNOWN:
                self.counts.unknown += 1
            case ext.Fault.BAD:
                self.counts.bad += 1
        self.complain(f"frame {line.type}", f"sent a frame that is ignored: {line.sentence}")
        if self.hello is None:
            self._owner.happened(life.Broke(self.number, f"did not begin with a hello: {line.sentence}"))
        return line.id is not None and self.calls.reject(line.id, f"gave a bad answer: {line.sentence}")

    def _given_up(self, key: str, call: PendingCall) -> None:
        if call.kind is ext.ToolResult and self.can("tool_cancel"):
            self.send(ext.ToolCancel(key, call.session, call.cwd))

    def _idle(self) -> None:
        if self._is_draining:
            self._is_draining = False
            self._owner.happened(life.Drained(self.number))
