"""May this call run, and with which arguments? Guards are asked first, then rules and mode, then a person.

    call ──> guards ──> rules and mode ──> allow ──> it runs
               ^              ├──────────> deny  ──> its result is the reason
               │              └──────────> ask   ──> a person ──> allow, deny
               └───────────────── with other arguments ──┘

Source: `docs/durability.md`, Approvals.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from zotd.contributions.guards import Hooks
from zotd.core import permissions
from zotd.core.choices import choices_for
from zotd.core.permissions import Action, PermissionQuery, Policy, Ruling
from zotd.core.ports import Replay, Tool
from zotd.core.transcript import INTERRUPTED
from zotd.exthost.guards import GuardRemark, GuardVerdict
from zotd.permissions.approvals import SessionApprovals
from zotd.permissions.preview import paths_of, preview_of

TURNS = 5
"""Most rounds in which guards and a person change the arguments in turn, before the call is refused."""


@dataclass(frozen=True, slots=True)
class AuthorizationContext:
    """Rules, guards and approvals of one session."""

    policy: Callable[[], Policy]
    """Rules and mode as they are now."""
    approvals: SessionApprovals
    cwd: str
    home: str | None
    """What `~` stands for where the tools run."""
    run: Callable[[], str | None]
    """The run in progress."""
    recorded: Callable[[str, str], str | None]
    """The question about a call, with arguments of this digest, that was on record before a restart."""
    way: str
    """What becomes of an approval when no client can decide: `park`, `deny` or `rules`."""
    notify: Callable[[str], None]
    """Notifies an absent user that an approval is pending."""
    ttl_s: float | None = None


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

    @property
    def is_needed(self) -> bool:
        """Whether calls need a check; if not, every call may run."""
        hooks = self._hooks()
        return (hooks is not None and hooks.concerns("tool_call")) or not self._context.policy().is_open

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

    async def clear(self, key: str, tool: Tool, args: Mapping[str, object]) -> GuardVerdict[dict[str, object]]:
        """Whether the call may run, and with which arguments. Safe to cancel."""
        verdict = GuardVerdict(dict(args))
        notes: list[GuardRemark] = []
        approved: str | None = None
        for _ in range(TURNS):
            verdict = await self._guarded(key, tool, args)
            notes += verdict.notes
            verdict.notes = notes
            if verdict.is_blocked:
                return verdict
            changed = await self._rule(key, tool, verdict, approved)
            if changed is None:
                return verdict
            args = changed
            approved = permissions.digest(tool.spec.name, changed)
        verdict.block("", f"{tool.spec.name} is denied: its arguments were changed again and again")
        return verdict

    async def again(self, tool: Tool, args: Mapping[str, object]) -> GuardVerdict[dict[str, object]]:
        """Return whether a call that was allowed before a restart may be repeated without asking again."""
        verdict = GuardVerdict(dict(args))
        ruling = permissions.judge(self._context.policy(), await self._question(tool, args))
        if ruling.action is Action.DENY:
            verdict.block("", f"{INTERRUPTED}; it is not repeated: {ruling.reason}")
        return verdict

    # --- inside -----------------------------------------------------------------------------------------------

    async def _guarded(self, key: str, tool: Tool, args: Mapping[str, object]) -> GuardVerdict[dict[str, object]]:
        hooks = self._hooks()
        if hooks is None or not hooks.concerns("tool_call"):
            return GuardVerdict(dict(args))
        return await hooks.call(key, tool.spec.name, args)

    async def _rule(
        self, key: str, tool: Tool, verdict: GuardVerdict[dict[str, object]], approved: str | None
    ) -> dict[str, object] | None:
        """Block the verdict, or let it be; other arguments when a person wants the call made with those.

        `approved`: the digest of what a person has allowed already, unless a rule denies it.
        """
        policy = self._context.policy()
        if policy.is_open:
            self._tell(key, tool, "approved", "yolo")
            return None
        ruling = permissions.judge(policy, await self._question(tool, verdict.value))
        digest = permissions.digest(tool.spec.name, verdict.value)
        if ruling.action is Action.ASK and digest == approved:
            return None
        was_asked = self._context.recorded(key, digest) is not None
        if ruling.action is Action.ASK and not was_asked and not self._context.approvals.is_attended:
            ruling = permissions.unattended(ruling, self._unattended or self._context.way)
        if ruling.action is Action.ASK:
            return await self._ask(key, tool, verdict, ruling)
        if ruling.action is Action.DENY:
            verdict.block("", ruling.reason)
        decision = "denied" if verdict.is_blocked else "approved"
        self._tell(key, tool, decision, SOURCES[ruling.source], reason=verdict.reason)
        return None

    async def _ask(
        self, key: str, tool: Tool, verdict: GuardVerdict[dict[str, object]], ruling: Ruling
    ) -> dict[str, object] | None:
        name, args, question = tool.spec.name, verdict.value, await self._question(tool, verdict.value)
        if not self._context.approvals.is_attended:
            self._context.notify(f"{name} waits for a decision: {ruling.reason}")
        answer = await self._context.approvals.ask(
            key,
            name,
            args,
            run=self._context.run() or "",
            preview=await preview_of(name, tool.extension, args, self._context.cwd, home=self._context.home),
            ttl_s=self._context.ttl_s,
            approval=self._context.recorded(key, permissions.digest(name, args)),
            choices=choices_for(question, cwd=self._context.cwd, home=self._context.home),
        )
        self._tell(key, tool, "approved" if answer.allowed else "denied", "user", reason=answer.reason)
        if not answer.allowed:
            verdict.block(answer.by, answer.reason)
            return None
        return answer.args

    async def _question(self, tool: Tool, args: Mapping[str, object]) -> PermissionQuery:
        is_safe = tool.extension is None and tool.replay is Replay.SAFE
        context = self._context
        found = await paths_of(tool.spec.name, tool.extension, args, context.cwd, home=context.home)
        return PermissionQuery(tool.spec.name, tool.extension, is_safe, args, found.spellings, found.is_resolved)

    def _tell(self, key: str, tool: Tool, decision: str, source: str, *, reason: str = "") -> None:
        hooks = self._hooks()
        if hooks is not None:
            hooks.decided(key, tool.spec.name, decision=decision, source=source, reason=reason)


SOURCES = {"yolo": "yolo", "rule": "policy", "mode": "policy", "session": "remembered"}
"""Where a ruling comes from, in the words of the event `permission_decision`."""
