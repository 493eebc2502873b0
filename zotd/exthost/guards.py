"""Extensions that are asked before something happens (`spec/extension-protocol.md` 6).

They are asked one after another, in load order. The first that blocks ends it; each rewrite is what the next one
sees. One that does not answer costs its 5 s three times; from then on it is skipped, or refuses if it fails closed,
until it answers or is replaced.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from zotd.core.life import State
from zotd.exthost.calls import CallError, CallTimeoutError
from zotd.exthost.extension import Extension
from zotd.wire import ext

TIMEOUTS = 3
"""So many in a row, and a guard is not asked any more."""

PROMPT_BYTES = 1024 * 1024
"""Longest system prompt that a guard may set."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Note:
    """A line for the transcript about what a guard did, or did not do."""

    extension: str
    event: str
    text: str


@dataclass(slots=True)
class Verdict(Generic[T]):
    """What the guards decided."""

    value: T
    """What they were asked about, rewritten."""
    is_blocked: bool = False
    reason: str = ""
    """Why it is blocked: a sentence for the model or the user."""
    by: str = ""
    """The extension that blocked it."""
    notes: list[Note] = field(default_factory=list)

    def block(self, by: str, reason: str) -> None:
        """End it."""
        self.is_blocked, self.by, self.reason = True, by, reason


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """One thing that guards are asked."""

    event: str
    session: str
    frame: Callable[[str, T], ext.EventIntercept]
    """From an id and the value as it is by now."""
    rewrite: Callable[[ext.EventInterceptResponse, T], T] = lambda _, value: value
    may_block: bool = True


async def ask(guards: Sequence[Extension], question: Question[T], value: T, *, limit_s: float) -> Verdict[T]:
    """Ask all `guards` (in load order) that intercept the question's event. Safe to cancel."""
    verdict = Verdict(value)
    for guard in guards:
        if concerns(guard, question.event):
            await _ask_one(guard, question, verdict, limit_s)
        if verdict.is_blocked:
            break
    return verdict


def concerns(guard: Extension, event: str) -> bool:
    """Whether it has to be asked: it intercepts the event, or it fails closed and has not been able to say so."""
    return intercepts(guard, event) or (
        event in guard.manifest.closed and (guard.offered is None or guard.state is not State.READY)
    )


def intercepts(guard: Extension, event: str) -> bool:
    """Whether it has said that it wants to be asked."""
    return guard.offered is not None and event in guard.offered.intercepts


def is_responding(guard: Extension) -> bool:
    """False for a guard that is not asked any more."""
    return guard.serving is None or guard.serving.calls.guard_timeouts < TIMEOUTS


async def _ask_one(guard: Extension, question: Question[T], verdict: Verdict[T], limit_s: float) -> None:
    peer = await guard.available(limit_s)
    if peer is None or not intercepts(guard, question.event):
        _unanswered(guard, question.event, verdict, guard.condition)
        return
    if not is_responding(guard):
        if question.event in guard.manifest.closed:
            verdict.block(guard.name, f"the guard {guard.name} is not responding, and refuses while it is not")
        return
    try:
        answer = await peer.call(
            ext.EventInterceptResponse,
            lambda key: question.frame(key, verdict.value),
            limit_s=limit_s,
            session=question.session,
        )
    except CallError as error:
        last = isinstance(error, CallTimeoutError) and not is_responding(guard)
        more = "; it is not responding, and is not asked again until it answers or is restarted" if last else ""
        _unanswered(guard, question.event, verdict, f"{guard.name} {error}{more}")
        return
    assert isinstance(answer, ext.EventInterceptResponse)
    if answer.block and question.may_block:
        verdict.block(guard.name, answer.reason or f"refused by the extension {guard.name}")
    else:
        verdict.value = question.rewrite(answer, verdict.value)


def _unanswered(guard: Extension, event: str, verdict: Verdict[T], what: str) -> None:
    """It was to be asked and did not answer."""
    if event in guard.manifest.closed:
        verdict.block(guard.name, f"refused, because a guard did not answer: {what}")
    verdict.notes.append(Note(guard.name, event, what))


# --- the four questions ---------------------------------------------------------------------------------------


def before_tool_call(session: str, tool_id: str, tool: str) -> Question[dict[str, object]]:
    """May this tool run with these arguments? A rewrite is for the execution only."""

    def rewrite(answer: ext.EventInterceptResponse, args: dict[str, object]) -> dict[str, object]:
        return answer.modified_args if isinstance(answer.modified_args, dict) else args

    return Question(
        "tool_call",
        session,
        lambda key, args: ext.EventIntercept(
            id=key, event="tool_call", session_id=session, tool_id=tool_id, tool_name=tool, tool_args=args
        ),
        rewrite,
    )


def before_turn(session: str) -> Question[int]:
    """May this step call the model?"""
    return Question(
        "turn_start",
        session,
        lambda key, step: ext.EventIntercept(id=key, event="turn_start", session_id=session, step=step),
    )


def before_message(session: str) -> Question[str]:
    """May the user see this text? A rewrite is for the user's eyes only."""
    return Question(
        "assistant_message",
        session,
        lambda key, text: ext.EventIntercept(id=key, event="assistant_message", session_id=session, text=text),
        lambda answer, text: answer.replace_text or text,
    )


def before_agent(session: str) -> Question[str]:
    """Which system prompt? It cannot be blocked, but by a guard that fails closed."""

    def rewrite(answer: ext.EventInterceptResponse, prompt: str) -> str:
        new = answer.system_prompt
        return prompt if new is None or len(new.encode()) > PROMPT_BYTES else new

    return Question(
        "before_agent_start",
        session,
        lambda key, prompt: ext.EventIntercept(
            id=key, event="before_agent_start", session_id=session, system_prompt=prompt
        ),
        rewrite,
        may_block=False,
    )
