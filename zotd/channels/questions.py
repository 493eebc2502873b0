"""Asks senders who may approve about calls, and carries out their decisions.

asked -> /allow, /deny or /change of the sender -> decided
      -> decided elsewhere, or cancelled -> the sender is told
"""

from collections.abc import Callable
from functools import partial

from zotd.channels import commands
from zotd.channels.follower import Question
from zotd.channels.outbox import ReplyQueue
from zotd.channels.outcomes import ALLOWED, CHANGED, DENIED, NOT_ALLOWED, NOTHING_WAITS, OVER, TOO_LONG
from zotd.channels.pairing import Address
from zotd.channels.plan_changes import changed_plan, is_plan
from zotd.channels.state import Correspondent, Delivery, PeerStore
from zotd.core.approvals import ALLOW, DENY
from zotd.core.model_questions import SAMPLING
from zotd.core.permissions import FILES, NETWORK
from zotd.core.person_questions import QUESTION
from zotd.core.plan import PlanError
from zotd.sessions.info import questions_of
from zotd.sessions.session import Session
from zotd.store.audit import AuditedAct, AuditTrail
from zotd.user_names import sender_name
from zotd.wire import api, events
from zotd.wire.errors import Code, CommandError
from zotd.wire.ext import ChannelChoice

PREVIEW_CHARS = 3_000
"""Longest preview of a call; with the text around it, it fits into one message of every platform."""

DONE = {ALLOW: ALLOWED, DENY: DENIED}
ENDED = {ALLOW: "Allowed", DENY: "Denied"}


def sender_of(address: Address) -> str:
    """Return the name of a sender in a session."""
    return f"{address.sender} on {address.channel}"


def user_of(address: Address) -> str:
    """Return the user that a sender is."""
    return sender_name(address.channel, address.sender)


class OpenQuestions:
    """Open questions and the senders that were asked. Kept in memory: after a restart, open questions are asked again."""

    def __init__(self, store: PeerStore, outbox: ReplyQueue, audit: AuditTrail) -> None:
        self._audit = audit
        self._store = store
        self._outbox = outbox
        self._asked: dict[str, dict[Address, Delivery]] = {}
        """By approval: the senders that were asked, with the message that the call belongs to."""
        self._untold: dict[tuple[Address, str], Callable[[], bool]] = {}
        """By sender and approval: functions that ask again, for channels that were not connected."""

    def take(self, session: Session, event: Question) -> None:
        """Ask the senders that wait for this session, or tell those that were asked that the question is over."""
        if isinstance(event, events.ApprovalRequested):
            # While catching up, events may be about questions that were decided long ago.
            if any(one.approval == event.approval for one in questions_of(session)):
                self._ask(session, event)
            return
        for address, delivery in self._asked.pop(event.approval, {}).items():
            # The sender that decided gets a reply to its command instead.
            if event.by != sender_of(address):
                who = f" by {event.by}" if event.by else ""
                said = f"{ENDED.get(event.decision, 'Over')}{who}." if event.decision in ENDED else OVER
                self._outbox.tell(address, said, delivery.metadata)

    def channel_up(self) -> None:
        """Ask the questions that could not be sent before, because the channel was not connected."""
        for key, ask in list(self._untold.items()):
            if key[1] not in self._asked or ask():
                del self._untold[key]

    async def decide(self, session: Session, peer: Correspondent, command: commands.ChatCommand) -> str:
        """Carry out `/allow`, `/deny` or `/change` for the named question or the only one; return the reply.

        Raises:
            CommandError: the question cannot be decided.
        """
        if not peer.may_approve:
            return NOT_ALLOWED
        waiting = questions_of(session)
        name, steps = _named(command)
        found = [one for one in waiting if one.approval == name] if name else waiting
        if not found:
            return OVER if name else NOTHING_WAITS
        if len(found) > 1:
            lines = [f"/{command.name} {one.approval} ({one.tool})" for one in found]
            return "\n".join(["Several calls wait. Name one:", *lines])
        # A person must see the whole call before allowing it.
        if command.name != "deny" and _is_cut(found[0]):
            return TOO_LONG
        try:
            changed = changed_plan(found[0], steps) if command.name == "change" else None
        except PlanError as error:
            return str(error)
        params = api.Approve(
            session=session.id,
            approval=found[0].approval,
            args_digest=found[0].args_digest,
            decision=DENY if command.name == "deny" else ALLOW,
            args=changed,
        )
        try:
            async with self._audit.recorded(_act(peer.address, params, found[0].tool)):
                await session.decide(params, sender_of(peer.address), accepted=lambda: None)
        except CommandError as error:
            if error.code is not Code.ALREADY_RESOLVED:
                raise
            return OVER  # another client was faster
        return CHANGED if changed is not None else DONE[params.decision]

    def _ask(self, session: Session, event: events.ApprovalRequested) -> None:
        names = ("deny",) if _is_cut(event) else ("allow", "change", "deny") if is_plan(event) else ("allow", "deny")
        choices = tuple(ChannelChoice(name.capitalize(), f"/{name} {event.approval}") for name in names)
        asked = self._asked.setdefault(event.approval, {})
        for delivery in list(self._store.deliveries.values()):
            peer = self._store.peers.get(delivery.address)
            if delivery.session != session.id or delivery.text is not None or peer is None or not peer.may_approve:
                continue
            # Once for each sender, however many of its messages are waiting.
            if peer.address not in asked:
                asked[peer.address] = delivery
                ask = partial(self._outbox.tell, peer.address, _words(event), delivery.metadata, choices)
                if not ask():
                    self._untold[peer.address, event.approval] = ask
        if not asked:
            del self._asked[event.approval]


_ASKS = {
    NETWORK: "May a command connect there?",
    FILES: "May commands change this?",
    QUESTION: "A tool asks a question; to allow is to agree.",
    SAMPLING: "May a tool ask the model?",
}
"""What is asked about something other than a call."""


def _words(event: events.ApprovalRequested) -> str:
    preview = event.preview or ""
    shown = f"{preview[:PREVIEW_CHARS]}\n… (cut)" if _is_cut(event) else preview
    # Longer than any run of backticks in the preview, so that a call cannot end the block and fake the text around
    # it.
    fence = "`" * max(3, 1 + max((len(run) for run in _backticks(shown)), default=0))
    how = f"{TOO_LONG} /deny denies it here." if _is_cut(event) else "Reply /allow or /deny."
    asks = _ASKS.get(event.tool.partition(":")[0], f"May this call of **{event.tool}** run?")
    if is_plan(event):
        asks = "The model proposes a plan; to allow is to approve it."
        how = how if _is_cut(event) else f"{how} To change it, reply with all steps as they should be, or use /change."
    return f"{asks} {how}\n\n{fence}\n{shown}\n{fence}"


def _act(address: Address, params: api.Approve, tool: str) -> AuditedAct:
    details = {
        "approval": params.approval,
        "args_digest": params.args_digest,
        "decision": params.decision,
        "tool": tool,
    }
    return AuditedAct(user_of(address), sender_of(address), "approve", params.session, details)


def _named(command: commands.ChatCommand) -> tuple[str, str]:
    """Return the approval that a command names, or nothing, and what follows."""
    if command.name != "change":
        return command.argument, ""
    word, steps = (*command.argument.split(maxsplit=1), "", "")[:2]
    return (word, steps) if word.startswith("a_") else ("", command.argument)


def _is_cut(event: events.ApprovalRequested) -> bool:
    """Return True if the call is too long to be shown, so that it cannot be allowed here."""
    return len(event.preview or "") > PREVIEW_CHARS


def _backticks(text: str) -> list[str]:
    return [run for run in "".join(c if c == "`" else " " for c in text).split(" ") if run]
