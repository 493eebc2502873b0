"""What a run asks its session's guards (`docs/extensions.md`), and how it tells what they did."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from zotd.clock import rfc3339
from zotd.contributions.events import result_of, say
from zotd.core import records
from zotd.core.ports import ToolOutcome
from zotd.core.retry import ModelError
from zotd.exthost.guards import GuardedCall, GuardRemark, Guards, GuardVerdict
from zotd.exthost.surroundings import About
from zotd.ledger.ledger import Shown
from zotd.wire import events, ext
from zotd.wire.content import Block, Text


class CallGuard(Protocol):
    """A guard of the program that embeds sessions; asked before those of extensions. Bounds its own time."""

    @property
    def is_needed(self) -> bool:
        """Whether it wants to be asked at the moment."""
        ...

    async def call(self, key: str, tool: str, args: Mapping[str, object]) -> ext.EventInterceptResponse:
        """May this tool run, and with which arguments? Answers as a guard of an extension does. Safe to cancel."""
        ...


class Hooks(Struct, frozen=True):
    """The guards of one session. Waits are bounded by the guards' time limit, and safe to cancel."""

    guards: Guards
    about: About
    emit: Callable[[ext.Event], None]
    streams: bool = False
    """Text is shown while it arrives, also when a guard may rewrite it afterwards (`guard.stream`)."""
    own: CallGuard | None = None
    """The guard of the program, if there is one."""

    def concerns(self, event: str) -> bool:
        """Whether a guard has to be asked."""
        return bool(self.guards.of(event)) or (event == "tool_call" and self.own is not None and self.own.is_needed)

    @property
    def holds_text(self) -> bool:
        """Text may not be shown before the guards have seen all of it."""
        return not self.streams and self.concerns("assistant_message")

    async def system_prompt(self, prompt: str) -> GuardVerdict[str]:
        """Return the system prompt that the guards give the agent, or their refusal."""
        return await self.guards.before_agent_start(self.about, prompt)

    async def step(self, number: int) -> GuardVerdict[int]:
        """May this step call the model?"""
        return await self.guards.turn_start(self.about, number)

    async def call(self, call: GuardedCall, args: Mapping[str, object]) -> GuardVerdict[dict[str, object]]:
        """May this tool run, and with which arguments?"""
        if self.own is not None and self.own.is_needed:
            answer = await self.own.call(call.id, call.tool, args)
            if answer.block:
                return GuardVerdict(dict(args), is_blocked=True, reason=answer.reason)
            args = answer.modified_args if isinstance(answer.modified_args, dict) else args
        return await self.guards.tool_call(self.about, call, args)

    async def result(self, call: GuardedCall, args: Mapping[str, object], outcome: ToolOutcome) -> GuardVerdict[str]:
        """What does the model read beside this result?"""
        return await self.guards.tool_result(self.about, call, args, result_of(outcome.content, outcome.is_error))

    async def message(self, text: str) -> GuardVerdict[str]:
        """What is the user shown of this reply?"""
        return await self.guards.assistant_message(self.about, text)

    def asked(self, key: str, tool: str, args: dict[str, object], *, reason: str) -> None:
        """Tell that a person is asked about a call, and why."""
        self.emit(say("permission_request", self.about, tool_id=key, tool_name=tool, tool_args=args, reason=reason))

    def decided(self, key: str, tool: str, *, decision: str, source: str, reason: str = "") -> None:
        """Tell whether a call may run (`approved`, `denied`) and who says so: `yolo`, `policy`, `remembered`, `user`."""
        about = {"tool_id": key, "tool_name": tool, "decision": decision, "source": source, "stage": "pre_execution"}
        if reason:
            about["reason"] = reason
        self.emit(say("permission_decision", self.about, **about))

    @contextmanager
    def compaction(self, run: str, messages: int, tokens: int, *, reason: str) -> Iterator[None]:
        """Tell that the transcript is about to be summarised, and how that went; `reason`: `manual` or `auto`."""
        about = {"compaction_id": run, "message_count": messages, "token_estimate": tokens, "reason": reason}
        self.emit(say("pre_compact", self.about, **about))
        status, error = "cancelled", None
        try:
            yield
            status = "completed"
        except ModelError as failure:
            status, error = "failed", failure.sentence
            raise
        finally:
            self.emit(say("post_compact", self.about, **about, status=status, error=error))


def with_own_guard(
    hooks: Callable[[], Hooks | None], own: CallGuard | None, about: About
) -> Callable[[], Hooks | None]:
    """Return what finds the hooks, with the guard of the program, if there is one; `hooks` finds those of extensions."""
    if own is None:
        return hooks

    def both() -> Hooks:
        found = hooks()
        return Hooks(Guards(tuple, 0), about, lambda _: None, own=own) if found is None else replace(found, own=own)

    return both


def noted(notes: Sequence[GuardRemark]) -> list[Shown]:
    """What guards did, or did not do, as records with the events that show it."""
    return [
        Shown(
            records.Note(time=rfc3339(), level="warn", text=note.text),
            [events.GuardNote(note.extension, note.event, note.text)],
        )
        for note in notes
    ]


def withheld(event: events.Event) -> events.Event:
    """The event without what the model thinks: guards judge the text only, and the one often says the other."""
    return events.ThinkingDelta("", session=event.session) if isinstance(event, events.ThinkingDelta) else event


def rewritten(content: list[Block], text: str) -> list[Block]:
    """The content of a reply with this text instead of its own."""
    return [*([Text(text)] if text else []), *(block for block in content if not isinstance(block, Text))]
