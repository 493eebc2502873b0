"""What hooks answer: by their exit code and stderr, or by JSON on stdout."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from zotd.bridges.hooks.command import HookRun
from zotd.wire.hooks import CommandHook, HookEvent

BLOCKS = 2
"""The exit code with which a hook refuses; its stderr is the reason."""

TOLD_CHARS = 500
"""Longest excerpt of a command, or of its stderr, in a sentence for people."""

_PLAIN_CONTEXT = frozenset({HookEvent.USER_PROMPT_SUBMIT, HookEvent.SESSION_START})
"""Events whose hooks may write what the model reads as plain text."""

_REFUSALS = frozenset({HookEvent.PRE_TOOL_USE, HookEvent.USER_PROMPT_SUBMIT, HookEvent.STOP})
"""Events that a hook can refuse. The reason of a hook of another event is text for the model."""

_RANK = ("deny", "ask", "allow", "")
"""What hooks say of a call, the strongest first."""


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """The answer of one hook, or of all hooks of an event."""

    permission: str = ""
    """`deny`, `ask` or `allow`; empty: nothing was said. Events that are no calls have only `deny`."""
    reason: str = ""
    updated_input: Mapping[str, object] | None = None
    context: str = ""
    """What the model reads."""
    stop: str | None = None
    """Why the run ends; None: it goes on."""
    messages: tuple[tuple[str, str], ...] = ()
    """For people: level and text."""


NOTHING = HookVerdict()


def verdict_of(hook: CommandHook, run: HookRun) -> HookVerdict:
    """Return what the hook has answered."""
    if run.code == 0:
        answer = _json(run.stdout)
        if answer is not None:
            return _of_json(hook.event, answer)
        return HookVerdict(context=run.stdout if hook.event in _PLAIN_CONTEXT else "")
    if run.code == BLOCKS:
        reason = run.stderr or f"refused by the hook {hook.command[:TOLD_CHARS]}"
        return _refusal(hook.event, reason)
    failure = run.failure or f"failed with exit code {run.code}: {run.stderr[:TOLD_CHARS] or 'no error output'}"
    sentence = f"the hook {hook.command[:TOLD_CHARS]} of {hook.event} {failure}; it had no effect"
    return HookVerdict(messages=(("warn", sentence),))


def combined(verdicts: Iterable[HookVerdict]) -> HookVerdict:
    """Return the answers of several hooks as one: the strongest word about a call, and of several inputs the last."""
    found = list(verdicts)
    permission = min((one.permission for one in found), key=_RANK.index, default="")
    said = [one for one in found if one.permission == permission]
    return HookVerdict(
        permission=permission,
        reason="\n".join(one.reason for one in said if one.reason),
        updated_input=next((one.updated_input for one in reversed(found) if one.updated_input is not None), None),
        context="\n\n".join(one.context for one in found if one.context),
        stop=next((one.stop for one in found if one.stop is not None), None),
        messages=tuple(message for one in found for message in one.messages),
    )


def _refusal(event: HookEvent, reason: str) -> HookVerdict:
    if event in _REFUSALS:
        return HookVerdict("deny", reason)
    if event in {HookEvent.POST_TOOL_USE, HookEvent.POST_TOOL_USE_FAILURE}:
        return HookVerdict(context=reason)
    return HookVerdict(messages=(("warn", reason[:TOLD_CHARS]),))


def _of_json(event: HookEvent, answer: Mapping[str, object]) -> HookVerdict:
    specific = answer.get("hookSpecificOutput")
    details: Mapping[str, object] = specific if isinstance(specific, dict) else {}
    permission, reason = _text(details, "permissionDecision"), _text(details, "permissionDecisionReason")
    decision, given = _text(answer, "decision"), _text(answer, "reason")
    context = _text(details, "additionalContext")
    if event is HookEvent.PRE_TOOL_USE and not permission and decision in {"approve", "block"}:
        permission, reason = "allow" if decision == "approve" else "deny", given
    elif decision == "block":
        refused = _refusal(event, given or "a hook refused it without a reason")
        permission, reason = refused.permission, refused.reason
        context = "\n\n".join(filter(None, (refused.context, context)))
    message = _text(answer, "systemMessage")
    updated = details.get("updatedInput")
    return HookVerdict(
        permission=permission if permission in _RANK else "",
        reason=reason,
        updated_input=updated if isinstance(updated, dict) else None,
        context=context,
        stop=_text(answer, "stopReason") or "a hook stopped the run" if answer.get("continue") is False else None,
        messages=(("info", message),) if message else (),
    )


def _json(stdout: str) -> Mapping[str, object] | None:
    if not stdout.startswith("{"):
        return None
    try:
        answer = json.loads(stdout)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
