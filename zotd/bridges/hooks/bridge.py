"""Translates between host and hooks: events and questions of the extension protocol become runs of commands.

    event_intercept ──> a task ──> the hooks of the event, side by side ──> event_intercept_response
    event           ──> a task ──> the hooks of the event ──> notify, submit

Every question gets exactly one answer. A hook that fails or takes too long refuses nothing.
"""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from zotd.bridges.hooks.command import run
from zotd.bridges.hooks.tool_names import TranslatedCall
from zotd.bridges.hooks.verdict import HookVerdict, combined, verdict_of
from zotd.bridges.host_link import HostLink
from zotd.sdk.pipe import Frame, text
from zotd.wire.hooks import CommandHook, HookEvent

LEAVE_S = 1.5
"""Time from the host's `shutdown` to the end of hooks that still run. The host waits 2 s for the exit."""

MAX_CONTINUED = 10
"""How often in a row hooks of `Stop` may have a session go on: one that always wants more would never end."""

MODES = {"yolo": "bypassPermissions", "workspace": "acceptEdits", "ask": "default", "read-only": "plan"}
"""`permission_mode` of hooks, by the session's mode."""

QUESTIONS: Mapping[str, tuple[HookEvent, ...]] = {
    "user_prompt_submit": (HookEvent.USER_PROMPT_SUBMIT, HookEvent.SESSION_START),
    "tool_call": (HookEvent.PRE_TOOL_USE,),
    "tool_result": (HookEvent.POST_TOOL_USE, HookEvent.POST_TOOL_USE_FAILURE),
}
"""What the host asks, by the hooks that answer it."""

EVENTS: Mapping[str, tuple[HookEvent, ...]] = {
    "session_start": (HookEvent.SESSION_START,),
    "permission_request": (HookEvent.NOTIFICATION,),
    "turn_end": (HookEvent.STOP,),
    "pre_compact": (HookEvent.PRE_COMPACT,),
    "post_compact": (HookEvent.POST_COMPACT,),
    "session_end": (HookEvent.SESSION_END,),
}


@dataclass(slots=True)
class HookedSession:
    """What the bridge knows of one session."""

    starting: asyncio.Task[None] | None = None
    """Runs the hooks of `SessionStart`."""
    context: list[str] = field(default_factory=list)
    """What the model reads with the next prompt."""
    beside: dict[str, str] = field(default_factory=dict)
    """What the model reads beside results of calls that have not ended, by call."""
    stop: str | None = None
    """Why the next step does not begin; None: it may."""
    continued: int = 0
    """How often hooks have had it go on since the last prompt of a person."""
    submitted: str | None = None
    """The prompt with which they did; it is no prompt of a person."""
    mode: str = ""


class HookBridge:
    """The bridge between the host and some hooks, in one directory."""

    def __init__(self, hooks: Sequence[CommandHook], link: HostLink, env: Mapping[str, str], cwd: str) -> None:
        """Prepare the bridge; `hello` was sent. Hooks run in `cwd` with `env`."""
        self._hooks = list(dict.fromkeys(hooks))  # one that several files have runs once
        self._link = link
        self._cwd = cwd
        self._env = {**env, "CLAUDE_PROJECT_DIR": cwd}
        self._sessions: dict[str, HookedSession] = {}
        self._subscribed: set[str] = set()

    async def run(self) -> None:
        """Serve until the host sends `shutdown` or closes our stdin."""
        self._subscribe(self._wanted(EVENTS), self._wanted(QUESTIONS))
        self._link.send({"type": "ready"})
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as patience, asyncio.TaskGroup() as tasks:
                await self._read(tasks)
                patience.reschedule(asyncio.get_running_loop().time() + LEAVE_S)
        self._link.send({"type": "shutdown_ack"})

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        async for frame in self._link.frames():
            if text(frame, "type") == "shutdown":
                return
            if text(frame, "type") in {"event", "event_intercept"}:
                tasks.create_task(self._receive(frame, tasks))

    def _wanted(self, kinds: Mapping[str, Collection[HookEvent]]) -> list[str]:
        there = {hook.event for hook in self._hooks}
        return [kind for kind, events in kinds.items() if not there.isdisjoint(events)]

    def _subscribe(self, events: Sequence[str], questions: Sequence[str]) -> None:
        self._subscribed.update(questions)
        self._link.send({"type": "subscribe", "events": events, "intercept": questions})

    def _ask_too(self, question: str) -> None:
        """Have the host ask this, too, from now on."""
        if question not in self._subscribed:
            self._subscribe((), (question,))

    async def _receive(self, frame: Frame, tasks: asyncio.TaskGroup) -> None:
        session_id = text(frame, "session_id")
        session = self._sessions.setdefault(session_id, HookedSession())
        session.mode = text(frame, "mode") or session.mode
        about = HookedFrame(frame, session_id, session, tasks)
        if text(frame, "type") == "event":
            await self._hear(about)
            return
        answer: Mapping[str, object] = {}
        try:
            answer = await self._decide(about)
        finally:  # each question needs an answer, or the host would wait for its timeout
            self._link.send({"type": "event_intercept_response", "id": text(frame, "id"), **answer})

    async def _decide(self, about: "HookedFrame") -> Mapping[str, object]:
        match text(about.frame, "event"):
            case "user_prompt_submit":
                return await self._prompt(about)
            case "tool_call":
                return await self._call(about)
            case "tool_result":
                return await self._result(about)
            case "turn_start":
                return _stopped(about.session)
            case _:
                return {}

    async def _hear(self, about: "HookedFrame") -> None:
        match text(about.frame, "event"):
            case "session_start":
                await self._started(about)
            case "permission_request":
                await self._asked(about)
            case "turn_end":
                await self._ended(about)
            case "pre_compact" | "post_compact":
                await self._compacts(about)
            case "session_end":
                await self._left(about)
            case _:
                pass

    # --- questions ----------------------------------------------------------------------------------------------

    async def _prompt(self, about: "HookedFrame") -> Mapping[str, object]:
        session, prompt = about.session, text(about.frame, "text")
        if session.starting is not None:
            await asyncio.wait([session.starting])
        is_ours = prompt == session.submitted
        session.submitted = session.stop = None
        context, session.context = session.context, []
        if not is_ours:
            session.continued = 0
            verdict = await self._fire(about, HookEvent.USER_PROMPT_SUBMIT, {"prompt": prompt})
            if verdict.permission == "deny" or verdict.stop is not None:
                session.context = context  # for the next prompt
                return {"block": True, "reason": verdict.reason or verdict.stop}
            context.append(verdict.context)
        return {"context": "\n\n".join(filter(None, context))}

    async def _call(self, about: "HookedFrame") -> Mapping[str, object]:
        use = about.tool_use(self._cwd)
        verdict = await self._fire(about, HookEvent.PRE_TOOL_USE, about.call_fields(use), use.names)
        if verdict.stop is not None:
            about.session.stop = verdict.stop
            self._ask_too("turn_start")
            return {"block": True, "reason": verdict.stop}
        if verdict.permission == "deny":
            return {"block": True, "reason": verdict.reason}
        if verdict.context:
            about.session.beside[text(about.frame, "tool_id")] = verdict.context
            self._ask_too("tool_result")
        answer: dict[str, object] = {"permission": verdict.permission, "reason": verdict.reason}
        if verdict.updated_input is not None:
            answer["modified_args"] = use.changed(verdict.updated_input)
        return answer

    async def _result(self, about: "HookedFrame") -> Mapping[str, object]:
        use, result = about.tool_use(self._cwd), about.frame.get("result")
        found: Mapping[str, object] = result if isinstance(result, dict) else {}
        fields = about.call_fields(use)
        if found.get("is_error"):
            event, fields["error"], fields["is_interrupt"] = HookEvent.POST_TOOL_USE_FAILURE, _words(found), False
        else:
            event, fields["tool_response"] = HookEvent.POST_TOOL_USE, _response(use, found)
        verdict = await self._fire(about, event, fields, use.names)
        if verdict.stop is not None:
            about.session.stop = verdict.stop
            self._ask_too("turn_start")
        beside = about.session.beside.pop(text(about.frame, "tool_id"), "")
        return {"context": "\n\n".join(filter(None, (beside, verdict.context)))}

    # --- events -------------------------------------------------------------------------------------------------

    async def _started(self, about: "HookedFrame") -> None:
        about.session.starting = asyncio.current_task()
        source = text(about.frame, "source") or "startup"
        verdict = await self._fire(about, HookEvent.SESSION_START, {"source": source}, (source,))
        if verdict.context:
            about.session.context.append(verdict.context)

    async def _asked(self, about: "HookedFrame") -> None:
        kind = "permission_prompt"
        fields = {"message": text(about.frame, "reason"), "notification_type": kind}
        await self._fire(about, HookEvent.NOTIFICATION, fields, (kind,))

    async def _ended(self, about: "HookedFrame") -> None:
        session = about.session
        if text(about.frame, "stop") != "end_turn":
            return
        verdict = await self._fire(about, HookEvent.STOP, {"stop_hook_active": session.continued > 0})
        if verdict.permission != "deny" or verdict.stop is not None:
            return
        if session.continued == MAX_CONTINUED:
            self._notify(about, "warn", f"hooks of Stop had the session go on {MAX_CONTINUED} times; it stops now")
            return
        session.continued += 1
        session.submitted = verdict.reason
        self._link.send({"type": "submit", "text": verdict.reason, "session_id": about.id})

    async def _compacts(self, about: "HookedFrame") -> None:
        trigger = text(about.frame, "reason") or "auto"
        is_before = text(about.frame, "event") == "pre_compact"
        if is_before or text(about.frame, "status") == "completed":
            event = HookEvent.PRE_COMPACT if is_before else HookEvent.POST_COMPACT
            await self._fire(about, event, {"trigger": trigger}, (trigger,))

    async def _left(self, about: "HookedFrame") -> None:
        await self._fire(about, HookEvent.SESSION_END, {"reason": "other"}, ("other",))
        self._sessions.pop(about.id, None)

    # --- running ------------------------------------------------------------------------------------------------

    async def _fire(
        self, about: "HookedFrame", event: HookEvent, fields: Mapping[str, object], names: Collection[str] = ()
    ) -> HookVerdict:
        """Run the hooks of an event that concern one of `names`, side by side, and tell people what they say."""
        chosen = [hook for hook in self._hooks if hook.event is event and hook.concerns(names)]
        if not chosen:
            return HookVerdict()
        known: dict[str, object] = {"session_id": about.id, "cwd": self._cwd, "hook_event_name": event.value}
        if about.session.mode:
            known["permission_mode"] = MODES.get(about.session.mode, "default")
        given = json.dumps({**known, **fields}).encode()
        waited: list[asyncio.Task[HookVerdict]] = []
        async with asyncio.TaskGroup() as group:
            for hook in chosen:
                if hook.is_async:
                    about.tasks.create_task(self._answer(hook, given))
                else:
                    waited.append(group.create_task(self._answer(hook, given)))
        verdict = combined(task.result() for task in waited)
        for level, message in verdict.messages:
            self._notify(about, level, message)
        return verdict

    async def _answer(self, hook: CommandHook, given: bytes) -> HookVerdict:
        return verdict_of(hook, await run(hook, given, cwd=self._cwd, env=self._env))

    def _notify(self, about: "HookedFrame", level: str, message: str) -> None:
        self._link.send({"type": "notify", "level": level, "message": message, "session_id": about.id})


@dataclass(frozen=True, slots=True)
class HookedFrame:
    """A frame of the host about a session."""

    frame: Frame
    id: str
    session: HookedSession
    tasks: asyncio.TaskGroup
    """Where hooks run that nothing waits for."""

    def tool_use(self, cwd: str) -> TranslatedCall:
        """The call that it is about."""
        args = self.frame.get("tool_args")
        return TranslatedCall(text(self.frame, "tool_name"), args if isinstance(args, dict) else {}, cwd)

    def call_fields(self, use: TranslatedCall) -> dict[str, object]:
        """What hooks get to know of that call."""
        return {"tool_name": use.name, "tool_input": use.input, "tool_use_id": text(self.frame, "tool_id")}


def _stopped(session: HookedSession) -> Mapping[str, object]:
    """Whether the next step may begin; a hook that stopped the run is heeded once."""
    stop, session.stop = session.stop, None
    return {} if stop is None else {"block": True, "reason": stop}


def _words(result: Mapping[str, object]) -> str:
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    return "\n".join(
        block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)
    )


def _response(use: TranslatedCall, result: Mapping[str, object]) -> dict[str, object]:
    """The result as hooks get it: its content, and the fields that hooks of common tools look at."""
    response: dict[str, object] = {"content": result.get("content", []), "success": True}
    if use.tool == "bash":
        response |= {"stdout": _words(result), "stderr": "", "interrupted": False}
    elif "file_path" in use.input:
        response["filePath"] = use.input["file_path"]
    return response
