"""One process of an extension, and the frames to and from it.

    call ──> Calls ──> stdin ──> the process ──> stdout ──> Process ──> Calls ──> the caller's answer
                                                               └──> `PeerListener.frame`, in the order they were sent

A peer knows the protocol but does not decide about the life of the process: it reports events of `core.life` to its owner,
which does.
"""

import re
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from zotd.core import life
from zotd.core.ports import Ancestor
from zotd.exthost.calls import Answer, Asked, Calls, ExtensionCallError, PendingCall, unanswered
from zotd.exthost.process import ExtensionProcess, ProcessListener
from zotd.exthost.requests import ID_CHARS, MAX_OPEN, Requests
from zotd.process.fd_handover import FdHandover
from zotd.wire import ext
from zotd.wire.base import encode
from zotd.wire.framing import SERVER_LIMIT

Tap = Callable[[str, bytes], None]

COMPLAINTS = 100
"""Limit of reported kinds of faults. More would flood the log without helping the author."""

LASTING = (
    *(ext.Hello, ext.RegisterTool, ext.RegisterCommand, ext.Subscribe, ext.Unregister),
    *(ext.Instructions, ext.Mentions, ext.ModuleError),
)
"""Frames that stay in effect, so that the next daemon needs them."""

LOST = "zotd was restarted meanwhile, and the outcome of this call is unknown"

# Finds the id in the head of a line that is too long to be parsed.
_ID = re.compile(rb'"id"\s*:\s*"([^"\\]{1,80})"')


class PeerListener(Protocol):
    """Receives the events of a peer, on the event loop."""

    taps: dict[Tap, None]
    """Called with every line, `in` or `out`, before it is handled. They return at once and never raise."""

    def frame(self, peer: "ExtensionPeer", frame: ext.FromExtension) -> None:
        """Handle a frame. Called for every frame in order; for an answer, just before its caller gets it."""
        ...

    def complained(self, sentence: str) -> None:
        """Report a fault: a sentence, or one that continues the extension's name."""
        ...

    def happened(self, event: life.FromProcess) -> None:
        """Report an event of the process to supervision. `Exited` comes once and last."""
        ...


class SkippedLines(Struct):
    """Numbers of skipped lines by kind; shown by `doctor`."""

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
        is_patient: bool = False,
    ) -> None:
        """Start the process numbered `number` in `core.supervision`; raises what `start` raises.

        `label` makes the ids of its calls unique among all processes. `handover` records frames for the next daemon. If it
        has a survivor, call `relive` first. `is_patient`: progress restarts the time limit of a call.
        """
        self.number = number
        self.hello: ext.Hello | None = None
        self.counts = SkippedLines()
        self.calls = Calls(label, idle=self._idle, given_up=self._given_up, is_patient=is_patient)
        self.requests = Requests(self.calls, self._reply)
        self._label = label
        self._owner = owner
        self._is_draining = False
        self._asked: dict[str, ext.CallTool] = {}
        """Its unanswered `call_tool` frames, without the arguments."""
        self._complaints: set[str] = set()
        self.handover = handover
        self.is_adopted = handover is not None and handover.survivor is not None
        """An earlier daemon started the process and has exchanged hello frames with it."""
        self._is_at_border = self.is_adopted
        """The next line may be the rest of one whose beginning the earlier daemon has read."""
        self.process = start(self)

    # --- to the process ---------------------------------------------------------------------------------------

    def can(self, capability: str) -> bool:
        """Return True if its `hello` announced this capability."""
        return self.hello is not None and capability in self.hello.capabilities

    def send(self, frame: ext.ToExtension) -> None:
        """Queue a frame after all earlier ones; never blocks.

        Raises:
            CallError: the frame exceeds 4 MiB and was not written.
        """
        line = encode(frame)
        if len(line) > SERVER_LIMIT:
            raise ExtensionCallError("cannot be sent more than 4 MiB at once")
        self._tap("out", line)
        self.process.write(line)

    async def call(  # noqa: PLR0913  (see `Calls.call`)
        self,
        kind: type[Answer],
        frame: Callable[[str], ext.ToExtension],
        *,
        limit_s: float | None,
        session: str | None = None,
        progress: Callable[[str], None] | None = None,
        lineage: tuple[Ancestor, ...] = (),
        cwd: str | None = None,
        asked: Callable[[Asked], None] | None = None,
    ) -> Answer:
        """Send a frame with a new id and wait for its answer; see `Calls.call`.

        A tool call that is cancelled or times out is followed by `tool_cancel`, if the extension announced it.
        """
        if not len(self.calls):
            self.process.forget_last_words()  # stderr of an earlier call does not explain a crash in this one
        return await self.calls.call(
            kind,
            lambda key: self.send(frame(key)),
            limit_s=limit_s,
            session=session,
            progress=progress,
            lineage=lineage,
            cwd=cwd,
            asked=asked,
        )

    def fail(self, reason: str) -> None:
        """Fail every open call and end the tools that the process requested, because it has ended or is about to."""
        self.calls.fail_all(reason)
        self.requests.close()

    def drain(self) -> None:
        """Report `Drained` as soon as no call is open."""
        self._is_draining = True
        self._disown()  # another process has taken over
        if not len(self.calls):
            self._idle()

    def complain(self, kind: str, sentence: str) -> None:
        """Report a fault to the extension's author, once for each kind."""
        if kind not in self._complaints and len(self._complaints) < COMPLAINTS:
            self._complaints.add(kind)
            self._owner.complained(sentence)

    def shut_down(self) -> None:
        """Send `shutdown` and close its stdin, which asks the process to exit."""
        self._disown()  # else the store keeps its stdin open and the process never reads its end
        self.send(ext.Shutdown())
        self.process.end_input()

    def relive(self) -> None:
        """Replay the frames that a surviving process sent to the earlier daemon; does nothing for a new process."""
        survivor = self.handover.survivor if self.handover else None
        if survivor is None:
            return
        for frame in map(ext.read, survivor.lines):
            match frame:
                case ext.Skipped():
                    continue
                case ext.CallTool():
                    self._asked[frame.id] = frame
                case ext.CallToolCancel():  # recorded by `_reply` when it was answered
                    self._asked.pop(frame.id, None)
                case _:
                    self._heard(frame)
        # Only ready processes survive, so supervision need not wait for the frame or for silence.
        self._heard(ext.Ready())
        survivor.lines.clear()
        for request in list(self._asked.values()):
            self._reply(ext.ToolAnswer(request.id, request.name, ({"type": "text", "text": LOST},), is_error=True))

    def lasting(self) -> list[ext.FromExtension]:
        """Return the frames in effect besides its registrations, for the next daemon."""
        return [*([self.hello] if self.hello is not None else []), *self._asked.values()]

    # --- from the process (exthost.process.ProcessListener) ----------------------------------------------------------

    def line(self, line: bytes) -> bool:
        """Handle a line of stdout; return True if it answered a call, which is free of the rate limit."""
        is_at_border, self._is_at_border = self._is_at_border, False
        frame = ext.read(line)
        # Half a line is no fault of the extension, so it is neither counted nor shown.
        if is_at_border and isinstance(frame, ext.Skipped):
            return False
        self._tap("in", line)
        if isinstance(frame, ext.Skipped):
            return self._skipped(frame)
        self._keep(line, frame)
        if self.is_adopted and isinstance(frame, Answer) and not frame.id.startswith(self._label):
            return False  # an answer to a call of the earlier daemon
        self._heard(frame)
        if isinstance(frame, ext.ToolProgress):
            self.calls.progress(frame)
        if isinstance(frame, ext.AskUser | ext.AskModel) and not self.calls.asked(frame):
            self.send(unanswered(frame))
        return isinstance(frame, Answer) and self.calls.answered(frame)

    def too_long(self, head: bytes) -> None:
        """Fail the call that a skipped line over 4 MiB would have answered, rather than let it time out."""
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
        """Prevent the next daemon from adopting the process."""
        if self.handover is not None:
            self.handover.end()

    def _keep(self, line: bytes, frame: ext.FromExtension) -> None:
        """Record a frame for the next daemon if it stays in effect."""
        if self.handover is None:
            return
        if isinstance(frame, LASTING):
            self.handover.record(line)
        elif isinstance(frame, ext.CallTool) and frame.id not in self._asked and len(self._asked) < MAX_OPEN:
            # The next daemon answers it with an error, for which id and name suffice. Arguments may be megabytes.
            self._asked[frame.id] = ext.CallTool(frame.id, frame.name[:ID_CHARS])
            self.handover.record(encode(self._asked[frame.id]))

    def _reply(self, answer: ext.ToolAnswer) -> None:
        """Answer a `call_tool` of the process."""
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
        # Before hello, an unreadable frame means that this is not an extension at all.
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
