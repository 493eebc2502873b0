"""May this call run, and with which arguments? Guards are asked first, then rules and mode, then a person.

    call ──> guards ──> rules and mode ──> allow ──> it runs
               ^              ├──────────> deny  ──> its result is the reason
               │              └──────────> ask   ──> a person ──> allow, deny
               └───────────────── with other arguments ──┘

Source: `docs/durability.md`, Approvals.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from zotd.contributions.guards import Hooks
from zotd.core import permissions
from zotd.core.choices import SESSION, choices_for
from zotd.core.closings import INTERRUPTED
from zotd.core.permissions import FILES, NETWORK, SHELL, WORKSPACE, Action, PermissionQuery, Policy, Ruling
from zotd.core.ports import Replay, StorageError, Tool, ToolOutcome
from zotd.core.web_access import WebAccess
from zotd.exthost.guards import GuardedCall, GuardRemark, GuardVerdict
from zotd.jail import Mechanism, Network
from zotd.permissions.authorization_context import AuthorizationContext
from zotd.permissions.call_hosts import CallHosts
from zotd.permissions.clearance import CallQuestion, Clearance
from zotd.permissions.closed_places import allowed_text, place_preview, refused_text, with_text
from zotd.permissions.decisions import ApprovalAnswer
from zotd.permissions.file_grants import judge_places, place_choice
from zotd.permissions.host_rules import host_choice, judge_host, judge_page
from zotd.permissions.preview import paths_of, preview_of, visible
from zotd.permissions.session_jail import border_of, keeps_to_jail
from zotd.proxy import HostDecision, HostQuestion
from zotd.proxy.rules import DECIDE_S

HOST_S = DECIDE_S - 60
"""Longest wait for a decision about a host, in seconds. Before the connections that wait for it give up, so that it ends on
record."""

COMMAND_CHARS = 2_000
"""Longest excerpt of a command in a question about a host."""

PLAN = "plan"
"""The `source` of the ruling about a plan that a person has to approve."""

TURNS = 5
"""Most rounds in which guards and a person change the arguments in turn, before the call is refused."""


class _AskedCall(NamedTuple):
    """A call in a question about a host, as people see it."""

    tool: str
    text: str
    """The command, or what stands for it."""


class Authorization:
    """Decides for each call of one run whether it may run, and with which arguments."""

    def __init__(
        self, context: AuthorizationContext, hooks: Callable[[], Hooks | None], *, unattended: str | None = None
    ) -> None:
        """`hooks` returns the guards that there are at the moment; None: there are none.

        `unattended`: what becomes of an approval that no client can decide, as the sender of the run wants; None: as configured.
        """
        self._context = context
        self._hooks = hooks
        self._unattended = unattended
        self._kept_closed: set[str] = set()
        """Places of which a person has decided, in this run, that commands may not change them."""

    @property
    def is_needed(self) -> bool:
        """Whether calls need a check; if not, every call may run."""
        return self.asks_guards or not self._context.policy().is_open

    @property
    def asks_guards(self) -> bool:
        """Whether guards are asked about each call. Without them most checks take less than a millisecond."""
        hooks = self._hooks()
        return hooks is not None and hooks.concerns("tool_call")

    def waved(self, calls: Iterable[tuple[str, str]]) -> None:
        """Report calls (id and tool) that run without a check."""
        hooks = self._hooks()
        if hooks is not None:
            for key, tool in calls:
                hooks.decided(key, tool, decision="approved", source="yolo")

    def settled(self, keys: Iterable[str]) -> None:
        """Tell that these calls run, or have a result: a question about them from before a restart is over."""
        if self._context.approvals.requests:
            for key in keys:
                self._context.approvals.settle(key)

    async def clear(self, key: str, tool: Tool, args: Mapping[str, object]) -> Clearance:
        """Whether the call may run, and with which arguments. Safe to cancel."""
        verdict = Clearance(dict(args))
        notes: list[GuardRemark] = []
        approved: str | None = None
        for _ in range(TURNS):
            guarded = await self._guarded(key, tool, args)
            notes += guarded.notes
            verdict = Clearance(
                guarded.value,
                guarded.is_blocked,
                guarded.reason,
                guarded.by,
                notes,
                guarded.permission,
                guarded.permission_reason,
            )
            if verdict.is_blocked:
                return verdict
            changed = await self._rule(key, tool, verdict, approved)
            if changed is None:
                if tool.spec.name == SHELL and not verdict.is_blocked:
                    self._context.once.use(_command(verdict.value))
                return verdict
            args = changed
            approved = permissions.digest(tool.spec.name, changed)
        verdict.block("", f"{tool.spec.name} is denied: its arguments were changed again and again")
        return verdict

    async def again(self, tool: Tool, args: Mapping[str, object]) -> Clearance:
        """Return whether a call that was allowed before a restart may be repeated without asking again."""
        verdict = Clearance(dict(args))
        policy = self._context.policy()
        question = await self._question("", policy, tool, args)
        ruling = permissions.judge(policy, question.query)
        if ruling.action is Action.DENY:
            verdict.block("", f"{INTERRUPTED}; it is not repeated: {ruling.reason}")
        else:
            verdict.confine(question)
        return verdict

    async def beyond(self, key: str, called: Mapping[str, object], outcome: ToolOutcome) -> ToolOutcome:
        """Have a person decide about what its jail has refused to a command that has ended: `outcome.closed`.

        Returns the outcome with what came of it. The command is not run again. Safe to cancel. `called`: the arguments.
        """
        context, places, command = self._context, outcome.closed, _command(called)
        args: dict[str, object] = {"paths": list(places), "command": command[:COMMAND_CHARS]}
        recorded = context.recorded(key, permissions.digest(FILES, args))
        if recorded is None:
            ruling = judge_places(context.policy(), places, context.home)
            if ruling.action is Action.ALLOW:  # while the command ran
                return with_text(outcome, allowed_text(places, SESSION))
            if ruling.action is Action.DENY:
                return with_text(outcome, refused_text(ruling.reason))
            if self._kept_closed.intersection(places) or context.policy().mode != WORKSPACE:
                return with_text(outcome, refused_text(""))
            if self._unless_unattended(key, FILES, ruling, waits=SHELL).action is Action.DENY:
                return with_text(outcome, refused_text(""))
            self._tell_asked(key, FILES, args, ruling)
        try:
            answer = await context.approvals.ask(
                key,
                FILES,
                args,
                run=context.run() or "",
                preview=place_preview(places, command[:COMMAND_CHARS]),
                ttl_s=context.ttl_s,
                approval=recorded,
                choices=(place_choice(places),),
                result=outcome.content,
            )
        except StorageError as error:
            return with_text(outcome, refused_text(f"the question could not be stored: {error}"))
        self._tell(key, FILES, "approved" if answer.allowed else "denied", "user", reason=answer.reason)
        if not answer.allowed:
            self._kept_closed.update(places)
            return with_text(outcome, refused_text(answer.reason.removeprefix("not run: ")))
        if answer.scope == "once":
            context.once.add(command, places)
        return with_text(outcome, allowed_text(places, answer.scope))

    def web(self, key: str, tool: str, shown: str) -> WebAccess | None:
        """Return the network for the call `key` of a built-in tool that needs no jail; None: it has none.

        Questions show the text `shown`.
        """
        hosts = CallHosts(self._judge_page, partial(self._ask_host, key, _AskedCall(tool, shown)))
        return self._context.access(hosts)

    def judge(self, key: str, query: PermissionQuery) -> Ruling:
        """Return what rules and mode say about something that the call `key` wants while it runs, unless it is to be asked."""
        ruling = permissions.judge(self._context.policy(), query)
        if ruling.action is not Action.ASK:
            decision = "approved" if ruling.action is Action.ALLOW else "denied"
            self._tell(key, query.tool, decision, SOURCES[ruling.source], reason=ruling.reason)
        return ruling

    async def ask_during(
        self, key: str, ruling: Ruling, query: PermissionQuery, preview: str, *, has_choices: bool
    ) -> ApprovalAnswer | None:
        """Have a person decide about something that the call `key` wants while it runs; any client can.

        The first answer counts. None: nobody is asked, because no client can decide and such questions do not wait. Safe to
        cancel. `has_choices`: it can be allowed for longer than once.
        """
        context, tool, args = self._context, query.tool, dict(query.args)
        if self._unless_unattended(key, tool, ruling).action is Action.DENY:
            return None
        self._tell_asked(key, tool, args, ruling)
        try:
            answer = await context.approvals.ask(
                key,
                tool,
                args,
                run=context.run() or "",
                preview=visible(preview),
                ttl_s=context.ttl_s,
                choices=choices_for(query, cwd=context.cwd, home=context.home) if has_choices else (),
                while_running=True,
            )
        except StorageError:
            return None
        self._tell(key, tool, "approved" if answer.allowed else "denied", "user", reason=answer.reason)
        return answer

    # --- inside -----------------------------------------------------------------------------------------------

    async def _guarded(self, key: str, tool: Tool, args: Mapping[str, object]) -> GuardVerdict[dict[str, object]]:
        hooks = self._hooks()
        if hooks is None or not hooks.concerns("tool_call"):
            return GuardVerdict(dict(args))
        return await hooks.call(GuardedCall(key, tool.spec.name, self._context.policy().mode), args)

    async def _rule(self, key: str, tool: Tool, verdict: Clearance, approved: str | None) -> dict[str, object] | None:
        """Block the verdict, or let it be; other arguments when a person wants the call made with those.

        `approved`: the digest of what a person has allowed already, unless a rule denies it.
        """
        policy = self._context.policy()
        if policy.is_open and verdict.permission != "ask":
            self._tell(key, tool.spec.name, "approved", "yolo")
            return None
        question = await self._question(key, policy, tool, verdict.value)
        verdict.confine(question)
        ruling = permissions.judge(policy, question.query)
        ruling = permissions.advised(ruling, question.query, verdict.permission, verdict.permission_reason)
        plans = self._context.plans
        if plans is not None and ruling.action is not Action.DENY and plans.concerns(key, tool, verdict.value):
            ruling = Ruling(Action.ASK, PLAN, "the plan needs a person's approval")
        digest = permissions.digest(tool.spec.name, verdict.value)
        if ruling.action is Action.ASK and digest == approved:
            return None
        was_asked = self._context.recorded(key, digest) is not None
        if ruling.action is Action.ASK and not was_asked and not self._context.approvals.is_attended:
            ruling = permissions.unattended(ruling, self._unattended or self._context.way)
        if ruling.action is Action.ASK:
            return await self._ask(key, tool, verdict, ruling, query=question.query)
        if ruling.action is Action.DENY:
            verdict.block("", ruling.reason)
        decision = "denied" if verdict.is_blocked else "approved"
        self._tell(key, tool.spec.name, decision, SOURCES[ruling.source], reason=verdict.reason)
        return None

    async def _ask(
        self, key: str, tool: Tool, verdict: Clearance, ruling: Ruling, *, query: PermissionQuery
    ) -> dict[str, object] | None:
        name, args = tool.spec.name, verdict.value
        self._tell_asked(key, name, args, ruling)
        shown = await preview_of(name, tool.extension, args, self._context.cwd, home=self._context.home)
        if not self._context.approvals.is_attended:
            self._context.notify(f"{name} waits for a decision: {ruling.reason}")
        plans = self._context.plans if ruling.source == PLAN else None
        if plans is not None:
            await plans.proposed(key, args)
        try:
            answer = await self._context.approvals.ask(
                key,
                name,
                args,
                run=self._context.run() or "",
                preview=f"{visible(ruling.reason)}\n\n{shown}" if query.border else shown,
                ttl_s=self._context.ttl_s,
                approval=self._context.recorded(key, permissions.digest(name, args)),
                choices=() if plans is not None else choices_for(query, cwd=self._context.cwd, home=self._context.home),
            )
        except asyncio.CancelledError:
            if plans is not None and not self._context.approvals.is_frozen:  # else the question outlives this process
                plans.given_up(key)
            raise
        reason = answer.reason if plans is None else await plans.answered(key, answer)
        self._tell(key, name, "approved" if answer.allowed else "denied", "user", reason=reason)
        if not answer.allowed:
            verdict.block(answer.by, reason)
            return None
        return answer.args

    async def _question(self, key: str, policy: Policy, tool: Tool, args: Mapping[str, object]) -> CallQuestion:
        name, is_safe = tool.spec.name, tool.extension is None and tool.replay is Replay.SAFE
        context = self._context
        found = await paths_of(name, tool.extension, args, context.cwd, home=context.home)
        query = PermissionQuery(name, tool.extension, is_safe, args, found.spellings, found.is_resolved)
        if policy.mode != WORKSPACE or tool.extension is not None or not keeps_to_jail(name):
            return CallQuestion(query, found, None)
        jail = await context.jail(_command(args) if name == SHELL else "")
        if jail is None:
            return CallQuestion(query, found, None)
        border = border_of(name, jail.policy, found.real) if found.is_resolved else "use a path that cannot be resolved"
        query = replace(query, is_confined=not border, border=border)
        if name != SHELL or jail.policy.network is not Network.PROXIED or jail.mechanism is not Mechanism.BUBBLEWRAP:
            return CallQuestion(query, found, jail)
        hosts = CallHosts(self._judge_host, partial(self._ask_host, key, _AskedCall(SHELL, _command(args))))
        return CallQuestion(query, found, jail, hosts, await context.outlet(hosts))

    def _judge_host(self, question: HostQuestion) -> Ruling:
        return judge_host(self._context.policy(), self._context.hosts(), question)

    def _judge_page(self, question: HostQuestion) -> Ruling:
        context = self._context
        return judge_page(context.policy(), context.hosts(), question, is_open=context.is_open())

    async def _ask_host(self, key: str, call: "_AskedCall", question: HostQuestion, ruling: Ruling) -> HostDecision:
        """Have a person decide whether the call `key` may connect there."""
        context, (host, port) = self._context, question.remote
        ruling = self._unless_unattended(key, NETWORK, ruling, waits=call.tool)
        if ruling.action is Action.DENY:
            return HostDecision(allowed=False, reason=ruling.reason)
        args: dict[str, object] = {"host": host, "port": port, "command": call.text[:COMMAND_CHARS]}
        self._tell_asked(key, NETWORK, args, ruling)
        try:
            answer = await context.approvals.ask(
                key,
                NETWORK,
                args,
                run=context.run() or "",
                preview=visible(f"{call.tool} wants to connect: {ruling.reason}.\n\n$ {call.text[:COMMAND_CHARS]}"),
                ttl_s=HOST_S if context.ttl_s is None else min(context.ttl_s, HOST_S),
                choices=(host_choice(question),),
                while_running=True,
            )
        except StorageError as error:
            return HostDecision(allowed=False, reason=f"the question could not be stored: {error}")
        self._tell(key, NETWORK, "approved" if answer.allowed else "denied", "user", reason=answer.reason)
        return HostDecision(answer.allowed, answer.reason.removeprefix("not run: "))

    def _unless_unattended(self, key: str, tool: str, ruling: Ruling, *, waits: str = "") -> Ruling:
        """Return what to do about a question of a call that runs: ask it, or deny it because no client can decide.

        `waits`: the tool that waits meanwhile, if the question names another one.
        """
        if self._context.approvals.is_attended:
            return ruling
        ruling = permissions.unattended(ruling, self._unattended or self._context.way)
        if ruling.action is Action.DENY:
            self._tell(key, tool, "denied", SOURCES[ruling.source], reason=ruling.reason)
        else:
            self._context.notify(f"{waits} waits for a decision: {ruling.reason}" if waits else ruling.reason)
        return ruling

    def _tell_asked(self, key: str, tool: str, args: dict[str, object], ruling: Ruling) -> None:
        hooks = self._hooks()
        if hooks is not None:
            hooks.asked(key, tool, args, reason=ruling.reason)

    def _tell(self, key: str, tool: str, decision: str, source: str, *, reason: str = "") -> None:
        hooks = self._hooks()
        if hooks is not None:
            hooks.decided(key, tool, decision=decision, source=source, reason=reason)


def _command(args: Mapping[str, object]) -> str:
    return str(args.get("command", ""))


SOURCES = {
    "yolo": "yolo",
    PLAN: "policy",
    "rule": "policy",
    "mode": "policy",
    "session": "remembered",
    "guard": "policy",
}
"""Where a ruling comes from, in the words of the event `permission_decision`."""
