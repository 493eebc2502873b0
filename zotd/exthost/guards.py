"""Asks guards, that is, extensions that may block or rewrite an event (`docs/extensions.md`).

Guards are asked one after another, in load order. The first block ends the sequence; each guard sees the rewrite of the
one before. A guard that does not answer delays its event by 5 s three times. After that it is skipped, or refuses if it
fails closed, until it answers or is replaced.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from msgspec.structs import replace

from zotd.core.depth import is_too_deep
from zotd.core.life import ExtensionState
from zotd.core.run_watch import GuardAnswer, RunWatch, Unwatched
from zotd.exthost.calls import CallTimeoutError, ExtensionCallError
from zotd.exthost.extension import SupervisedExtension
from zotd.exthost.surroundings import About
from zotd.wire import ext
from zotd.wire.base import encode

TIMEOUTS = 3
"""After so many consecutive timeouts a guard is not asked any more."""

TOLD_CHARS = 500
"""Longest excerpt of rewritten arguments in a note."""

REASON_CHARS = 4_000
"""Longest reason for a block, the same as for a note."""

SHOWN_CHARS = 500_000
"""Longest text that a guard may show instead of a reply; it is cut, because its event is limited to 4 MiB."""

PROMPT_BYTES = 1024 * 1024
"""Longest system prompt that a guard may set."""

CONTEXT_CHARS = 20_000
"""Longest text that one guard may add to a prompt or a result; it is cut. The model reads it again with each request."""

PERMISSIONS = ("ask", "allow")
"""What a guard may want for a call, the stronger wish first."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GuardRemark:
    """A line for the transcript about a block, a rewrite or a missing answer."""

    extension: str
    event: str
    text: str


@dataclass(slots=True)
class GuardVerdict(Generic[T]):
    """The combined decision of all guards."""

    value: T
    """The value after all rewrites."""
    is_blocked: bool = False
    reason: str = ""
    """Why it is blocked: a sentence for the model or the user."""
    by: str = ""
    """The extension that blocked it."""
    notes: list[GuardRemark] = field(default_factory=list)
    permission: str = ""
    """For a call: `ask` (a person has to decide) or `allow` (the session's mode need not ask); empty: no wish."""
    permission_reason: str = ""
    """Why a person has to decide."""

    def wish(self, by: str, answer: ext.EventInterceptResponse) -> None:
        """Record what a guard wants for a call; of several wishes, `ask` counts."""
        if answer.permission == "ask" or (answer.permission == "allow" and not self.permission):
            self.permission = answer.permission
            self.permission_reason = answer.reason[:REASON_CHARS] or f"the extension {by} wants a person to decide"

    def block(self, by: str, reason: str) -> None:
        """Record a block; no further guard is asked."""
        self.is_blocked, self.by, self.reason = True, by, reason


@dataclass(frozen=True, slots=True)
class GuardedCall:
    """The call that guards are asked about."""

    id: str
    tool: str
    mode: str = ""
    """The session's mode; empty: not told."""

    def named(self, blank: ext.EventIntercept) -> ext.EventIntercept:
        """Return the question with the call's id, its tool and the mode."""
        return replace(blank, tool_id=self.id, tool_name=self.tool, mode=self.mode or None)


@dataclass(frozen=True, slots=True)
class GuardQuery(Generic[T]):
    """An event that guards are asked about, and how their answers are applied."""

    event: str
    about: About
    frame: Callable[[ext.EventIntercept, T], ext.EventIntercept]
    """Fills in the current value."""
    rewrite: Callable[[ext.EventInterceptResponse, T], T] = lambda _, value: value
    what: str = "it"
    """The blocked object, for the note about a block."""
    told: Callable[[T], str] = lambda _: "rewrote it"
    """Text of the note about a rewrite; empty: there is none."""
    may_block: bool = True
    tool_id: str = ""
    """The call that it is about, if it is about one."""


async def ask(
    guards: Sequence[SupervisedExtension], question: GuardQuery[T], value: T, *, limit_s: float, watch: RunWatch
) -> GuardVerdict[T]:
    """Ask all `guards` (in load order) that intercept the question's event; `watch` is told. Safe to cancel."""
    verdict = GuardVerdict(value)
    for guard in guards:
        if concerns(guard, question.event):
            began, before = time.monotonic(), verdict.value
            key = await _ask_one(guard, question, verdict, limit_s, watch=watch)
            took_s, outcome = time.monotonic() - began, _outcome(verdict, before, answered=bool(key))
            about = question.tool_id
            watch.guarded(GuardAnswer(key, guard.name, question.event, about, time.time(), took_s, outcome))
        if verdict.is_blocked:
            break
    return verdict


def concerns(guard: SupervisedExtension, event: str) -> bool:
    """Return True if a guard has to be asked.

    Either it intercepts the event, or it fails closed and has not been able to subscribe yet: a crash at the right moment
    must not open what it protects.
    """
    return intercepts(guard, event) or (
        event in guard.manifest.closed and (guard.offered is None or guard.state is not ExtensionState.READY)
    )


def intercepts(guard: SupervisedExtension, event: str) -> bool:
    """Return True if it has subscribed to decisions about the event."""
    return guard.offered is not None and event in guard.offered.intercepts


def is_responding(guard: SupervisedExtension) -> bool:
    """Return False for a guard that is not asked any more after too many timeouts."""
    return guard.serving is None or guard.serving.calls.guard_timeouts < TIMEOUTS


def _outcome(verdict: GuardVerdict[T], before: T, *, answered: bool) -> str:
    if verdict.is_blocked:
        return "blocked"
    if not answered:
        return "unanswered"
    return "allowed" if verdict.value == before else "changed"


async def _ask_one(
    guard: SupervisedExtension, question: GuardQuery[T], verdict: GuardVerdict[T], limit_s: float, *, watch: RunWatch
) -> str:
    """Ask one guard, and return the id of the question; empty if there is no answer."""
    # A guard that is being reloaded is waited for; skipping it would let one call pass unchecked.
    if guard.manifest.guard_limit_s is not None:
        limit_s = guard.manifest.guard_limit_s
    peer = await guard.available(limit_s)
    if peer is None or not intercepts(guard, question.event):
        _unanswered(guard, question.event, verdict, guard.condition)
        return ""
    # Asking again would delay every call by the whole time limit.
    if not is_responding(guard):
        if question.event in guard.manifest.closed:
            refusal = f"the guard {guard.name} is not responding, so what it guards is refused"
            verdict.block(guard.name, refusal)
            verdict.notes.append(GuardRemark(guard.name, question.event, refusal))
        return ""
    about, asked = question.about, ""

    def frame(key: str) -> ext.EventIntercept:
        nonlocal asked
        asked = key
        blank = ext.EventIntercept(
            id=key,
            event=question.event,
            session_id=about.session,
            cwd=about.cwd_for(guard.manifest),
            traceparent=watch.traceparent(key) or None,
        )
        return question.frame(blank, verdict.value)

    try:
        answer = await peer.call(ext.EventInterceptResponse, frame, limit_s=limit_s, session=about.session)
    except ExtensionCallError as error:
        last = isinstance(error, CallTimeoutError) and not is_responding(guard)
        more = "; it is not responding, and is not asked again until it answers or is restarted" if last else ""
        _unanswered(guard, question.event, verdict, f"{guard.name} {error}{more}")
        return ""
    assert isinstance(answer, ext.EventInterceptResponse)
    # A block wins over a rewrite in the same answer.
    if answer.block and question.may_block:
        verdict.block(guard.name, answer.reason[:REASON_CHARS] or f"refused by the extension {guard.name}")
        verdict.notes.append(GuardRemark(guard.name, question.event, f"blocked {question.what}: {verdict.reason}"))
        return asked
    verdict.wish(guard.name, answer)
    rewritten = question.rewrite(answer, verdict.value)
    # An answer that changes nothing leaves no note in the transcript.
    if rewritten != verdict.value:
        verdict.value = rewritten
        if note := question.told(rewritten):
            verdict.notes.append(GuardRemark(guard.name, question.event, note))
    return asked


def _unanswered(guard: SupervisedExtension, event: str, verdict: GuardVerdict[T], what: str) -> None:
    """Apply `on_failure` of a guard that did not answer, and note it."""
    if event in guard.manifest.closed:
        verdict.block(guard.name, f"refused because a guard did not answer: {what}")
    # Clients were notified of the crash itself; this note says which event went unchecked because of it.
    verdict.notes.append(GuardRemark(guard.name, event, f"{what} (asked about {event})"))


class Guards:
    """Asks all guards of a workspace about the events that can be intercepted."""

    def __init__(
        self, extensions: Callable[[], Sequence[SupervisedExtension]], limit_s: float, watch: RunWatch | None = None
    ) -> None:
        """`extensions` returns the current ones in load order; `limit_s` is the time limit of each.

        `watch` is told of each answer.
        """
        self._extensions = extensions
        self._limit_s = limit_s
        self._watch = watch or Unwatched()

    def of(self, event: str) -> list[str]:
        """List the guards that would be asked. While `assistant_message` has any, text deltas are held back."""
        return [guard.name for guard in self._extensions() if concerns(guard, event)]

    async def user_prompt_submit(self, about: About, prompt: str, mode: str) -> GuardVerdict[str]:
        """Ask about a prompt that is about to begin a run; the value is what the model reads beside it."""
        question: GuardQuery[str] = GuardQuery(
            "user_prompt_submit",
            about,
            lambda blank, _: replace(blank, text=prompt, mode=mode),
            _more_context,
            what="a prompt",
            told=lambda _: "",
        )
        return await self._ask(question, "")

    async def tool_result(
        self, about: About, call: GuardedCall, args: Mapping[str, object], result: dict[str, object]
    ) -> GuardVerdict[str]:
        """Ask about the result of a call that ran with `args`; the value is what the model reads beside the result."""
        question: GuardQuery[str] = GuardQuery(
            "tool_result",
            about,
            lambda blank, _: replace(call.named(blank), tool_args=dict(args), result=result),
            _more_context,
            told=lambda _: "",
            may_block=False,
            tool_id=call.id,
        )
        return await self._ask(question, "")

    async def tool_call(
        self, about: About, call: GuardedCall, args: Mapping[str, object]
    ) -> GuardVerdict[dict[str, object]]:
        """Ask whether a tool may run and with which arguments. Approval by a person comes afterwards.

        A rewrite affects only the execution: the transcript keeps the model's own arguments.
        """
        tool = call.tool

        def frame(blank: ext.EventIntercept, args: dict[str, object]) -> ext.EventIntercept:
            return replace(call.named(blank), tool_args=args)

        def rewrite(answer: ext.EventInterceptResponse, args: dict[str, object]) -> dict[str, object]:
            changed = answer.modified_args
            # Deeper arguments could not be encoded for the journal or for other extensions.
            return changed if isinstance(changed, dict) and not is_too_deep(changed) else args

        def told(args: dict[str, object]) -> str:
            return f"changed the arguments of {tool} to {encode(args).decode()[:TOLD_CHARS]}"

        question = GuardQuery("tool_call", about, frame, rewrite, f"a call of {tool}", told, tool_id=call.id)
        return await self._ask(question, dict(args))

    async def turn_start(self, about: About, step: int) -> GuardVerdict[int]:
        """Ask whether this step may call the model."""
        question: GuardQuery[int] = GuardQuery(
            "turn_start", about, lambda blank, step: replace(blank, step=step), what=f"step {step}"
        )
        return await self._ask(question, step)

    async def assistant_message(self, about: About, text: str) -> GuardVerdict[str]:
        """Ask whether and how people see a reply. A blocked one is hidden. The transcript keeps the original."""
        question: GuardQuery[str] = GuardQuery(
            "assistant_message",
            about,
            lambda blank, text: replace(blank, text=text),
            lambda answer, text: answer.replace_text[:SHOWN_CHARS] or text,
            what="a reply, which is hidden",
            told=lambda _: "rewrote the displayed reply; the model sees its own",
        )
        return await self._ask(question, text)

    async def before_agent_start(self, about: About, system_prompt: str) -> GuardVerdict[str]:
        """Ask for the system prompt of a run. Only the missing answer of a guard that fails closed can block it."""
        question: GuardQuery[str] = GuardQuery(
            "before_agent_start",
            about,
            lambda blank, prompt: replace(blank, system_prompt=prompt),
            _new_prompt,
            told=lambda _: "replaced the system prompt",
            may_block=False,
        )
        return await self._ask(question, system_prompt)

    async def _ask(self, question: GuardQuery[T], value: T) -> GuardVerdict[T]:
        return await ask(self._extensions(), question, value, limit_s=self._limit_s, watch=self._watch)


def _new_prompt(answer: ext.EventInterceptResponse, prompt: str) -> str:
    new = answer.system_prompt
    # A prompt that is too long is ignored rather than cut: half an instruction may say the opposite.
    return prompt if new is None or len(new.encode()) > PROMPT_BYTES else new


def _more_context(answer: ext.EventInterceptResponse, context: str) -> str:
    added = answer.context[:CONTEXT_CHARS].strip()
    return "\n\n".join(filter(None, (context, added)))
