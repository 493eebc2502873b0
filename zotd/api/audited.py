"""Records commands that decide something in the audit trail, before they take effect (`docs/audit.md`)."""

import re
from collections.abc import Mapping

from zotd.api.connection import ServerConnection
from zotd.api.dispatch import Handler, Invocation
from zotd.core.ports import StorageError
from zotd.sessions.info import questions_of
from zotd.sessions.opening import SessionElsewhereError
from zotd.store.archive import Archive
from zotd.store.audit import AuditedAct
from zotd.wire import api
from zotd.wire.base import Frozen
from zotd.wire.errors import CommandError

AUDITED: Mapping[str, tuple[str, ...]] = {
    "approve": ("approval", "args_digest", "decision", "scope", "choice"),
    "shell": (),
    "run_command": ("name",),
    "set_mode": ("mode",),
    "grant.revoke": (),
    "session.agent_choose": ("option", "value"),
    "session.configure": ("mode",),
    "session.delete": (),
    "session.import": (),
    "session.move": ("to",),
    "ext.install": ("source",),
    "ext.remove": ("name",),
    "ext.enable": ("name",),
    "ext.disable": ("name",),
    "trust.grant": ("path", "digest"),
    "trust.revoke": ("path",),
    "batch.submit": ("batch",),
    "batch.cancel": ("batch",),
    "channel.pair": (),
    "channel.unpair": ("channel", "sender"),
    "auth.login": ("provider",),
    "auth.logout": ("provider",),
    "auth.begin": ("provider", "method"),
    "push.remove": ("browser",),
    "token.create": ("name", "role", "session", "user"),
    "token.revoke": ("name",),
    "daemon.reload": (),
    "daemon.shutdown": (),
    "daemon.drain": (),
}
"""The commands that are recorded, and which of their parameters: no texts, no arguments of tools, no secrets."""

USER_OF_URL = re.compile(r"//[^/\s]*@")
"""The user and password in an address, which are not recorded."""


class AuditedHandler:
    """A handler whose commands are recorded before they take effect."""

    def __init__(self, archive: Archive, fields: tuple[str, ...], handler: Handler) -> None:
        self._archive = archive
        self._fields = fields
        self.handler = handler

    async def __call__(self, call: Invocation, params: Frozen) -> Frozen | None:
        """Record the command, carry it out, and record its outcome.

        Raises:
            StorageError: it cannot be recorded, so it was not carried out.
            SessionElsewhereError: another daemon has the session, so that one records it.
        """
        details, session = _details(self._fields, params), ""
        # Not for `token.create`: its session is not what the command is about.
        if isinstance(params, api.Mutation | api.SessionMove):
            session = params.session
            details |= await _tool(call, params)
        assert isinstance(call.door, ServerConnection)  # `zot rpc` has no trail
        act = AuditedAct(call.door.account, call.door.sender, call.name, session, details)
        async with self._archive.audit.recorded(act):
            return await self.handler(call, params)


def audited(archive: Archive, name: str, handler: Handler) -> Handler:
    """Return a handler that records the command before `handler` runs; `handler` itself if it is not recorded."""
    return AuditedHandler(archive, AUDITED[name], handler) if name in AUDITED else handler


def _details(fields: tuple[str, ...], params: Frozen) -> dict[str, str]:
    given = {name: getattr(params, name, None) for name in fields}
    return {name: USER_OF_URL.sub("//", value) for name, value in given.items() if isinstance(value, str) and value}


async def _tool(call: Invocation, params: api.Mutation | api.SessionMove) -> dict[str, str]:
    """Return the tool that a decision is about.

    Raises:
        SessionElsewhereError: another daemon has the session, so it records the command.
    """
    if not params.session:
        return {}
    try:
        session = await call.manager.get(params.session)
        if isinstance(params, api.Approve):
            await session.load()
            tools = [one.tool for one in questions_of(session) if one.approval == params.approval]
            return {"tool": tools[0]} if tools else {}
    except SessionElsewhereError:
        raise
    except (CommandError, StorageError):  # the handler decides what that means for the command
        return {}
    return {}
