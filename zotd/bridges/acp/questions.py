"""Forwards approvals of the daemon to the editor as permission requests, and questions with fields as forms.

The first decision of any client counts. An editor that is closed, or answers `cancelled`, decides nothing: the question stays open for other clients.
"""

import json
import logging
from collections.abc import Callable

from msgspec.structs import asdict

from zotd.bridges.acp.daemon import DaemonLink
from zotd.bridges.acp.editor import Editor, Spawn
from zotd.client.asking import QUESTION, SAME, Lasting, lasting
from zotd.client.errors import CallError, ClientError
from zotd.wire import api
from zotd.wire.acp import (
    CallFields,
    CreateElicitation,
    Elicited,
    Form,
    FormField,
    Permission,
    PermissionOption,
    RequestPermission,
)
from zotd.wire.base import BadFrameError
from zotd.wire.events import ApprovalRequested

log = logging.getLogger(__name__)

_ONCE = {"allow_once": "allow", "reject_once": "deny"}
"""Decisions for the options that apply only to this call."""


class PermissionRequests:
    """The permission requests of one session that are open in the editor."""

    def __init__(
        self, session: str, editor: Editor, daemon: DaemonLink, spawn: Spawn, *, has_forms: bool = False
    ) -> None:
        """Begin without open requests. `has_forms`: the editor can show forms."""
        self._has_forms = has_forms
        self._session = session
        self._editor = editor
        self._daemon = daemon
        self._spawn = spawn
        self._open: dict[str, Callable[[], object]] = {}
        """By approval: a function that withdraws the request."""

    def ask(self, question: ApprovalRequested, call: CallFields) -> None:
        """Ask the person, unless the question is already open."""
        if question.approval not in self._open:
            is_form = self._has_forms and question.tool == QUESTION and bool(question.args)
            work = self._ask_form(question) if is_form else self._ask(question, call)
            self._open[question.approval] = self._spawn(f"the question {question.approval}", work)

    def close(self, approval: str) -> None:
        """Withdraw a request that was decided elsewhere or is no longer needed."""
        take_back = self._open.pop(approval, None)
        if take_back is not None:
            take_back()

    def keep(self, approvals: set[str]) -> None:
        """Withdraw all requests except these."""
        for approval in set(self._open) - approvals:
            self.close(approval)

    async def _ask(self, question: ApprovalRequested, call: CallFields) -> None:
        # Plain CallFields, because an update would be encoded with its tag.
        offered, wider = options(question), _lasting(question)
        request = RequestPermission(self._session, CallFields(**asdict(call)), offered)
        try:
            answer = await self._editor.ask("session/request_permission", request, Permission)
        except BadFrameError as error:
            log.info("the editor did not decide about %s: %s", question.approval, error)
            return
        finally:  # removed first: the daemon reports our own decision too, which must not cancel this task
            self._open.pop(question.approval, None)
        chosen = answer.outcome.option_id
        # An editor can only choose what was offered to it.
        if answer.outcome.outcome == "selected" and any(chosen == one.option_id for one in offered):
            await self._decide(question, _ONCE.get(chosen, "allow"), wider.get(chosen))

    async def _ask_form(self, question: ApprovalRequested) -> None:
        form = Form("object", {name: _field(name, value) for name, value in question.args.items()})
        message = question.preview or "Please answer"
        wanted = CreateElicitation(self._session, question.approval, "form", message, form)
        try:
            answer = await self._editor.ask("elicitation/create", wanted, Elicited)
        except BadFrameError as error:
            log.info("the editor did not answer %s: %s", question.approval, error)
            return
        finally:  # as above
            self._open.pop(question.approval, None)
        if answer.action == "accept":
            await self._decide(question, "allow", None, {**question.args, **(answer.content or {})})
        elif answer.action == "decline":
            await self._decide(question, "deny", None)

    async def _decide(
        self,
        question: ApprovalRequested,
        decision: str,
        wider: Lasting | None,
        answers: dict[str, object] | None = None,
    ) -> None:
        params = api.Approve(
            session=self._session,
            approval=question.approval,
            args_digest=question.args_digest,
            decision=decision,
            scope=wider.scope if wider else "once",
            choice=wider.choice if wider else None,
            args=answers,
        )
        try:
            await self._daemon.ask(params, api.Nothing)
        except CallError as error:  # `already_resolved`, `stale_args`: another client was faster
            log.info("the decision about %s was refused: %s", question.approval, error.sentence)
        except ClientError as error:
            log.warning("the decision about %s did not arrive: %s", question.approval, error)


def _field(name: str, value: object) -> FormField:
    """Return a field with the value to begin with; what the server wants of it is part of the message."""
    if isinstance(value, bool):
        return FormField("boolean", name, value)
    if isinstance(value, int | float):
        return FormField("number", name, value)
    return FormField("string", name, value if isinstance(value, str) else json.dumps(value))


def options(question: ApprovalRequested) -> list[PermissionOption]:
    """Return the possible answers. There is no "reject always", because the daemon only remembers what is allowed."""
    return [
        PermissionOption("allow_once", "Allow once", "allow_once"),
        *(PermissionOption(key, _named(one), "allow_always") for key, one in _lasting(question).items()),
        PermissionOption("reject_once", "Reject", "reject_once"),
    ]


def _lasting(question: ApprovalRequested) -> dict[str, Lasting]:
    """Return the lasting permissions on offer, by the ids of their options."""
    return {
        f"allow_{one.scope}" if one.choice == SAME else f"allow_{one.choice}_{one.scope}": one
        for one in lasting(question)
    }


def _named(one: Lasting) -> str:
    what = "" if one.choice == SAME else f" {one.text}"
    if one.scope == "session":
        return f"Allow{what} for this session"
    return f"Always allow{what} (a rule in config.toml)"
