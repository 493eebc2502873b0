"""Loads what no event reports: the Git branch, today's cost and the model's context window. Keeps the last reply."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from zotd.client.errors import ClientError
from zotd.wire import api, auth, events, reports
from zotd.wire.events import AnyEvent
from zottui.state import ViewState
from zottui.transcript import text_of
from zottui.ui_context import CommandSender, NotePrinter, StateHolder, TaskSpawner


class FiguresContext(CommandSender, NotePrinter, StateHolder, TaskSpawner, Protocol):
    """What `Figures` needs of the application."""


class Figures:
    """Requests these values whenever they may have changed: at attach, after a run, when the session changes."""

    def __init__(self, ui: FiguresContext, change: Callable[[ViewState], None]) -> None:
        """`change` gets the state with the new values."""
        self._ui = ui
        self._change = change
        self.last_reply = ""
        """The last reply as Markdown, for `/copy` and the external editor."""
        self._session = ""

    def attached(self, snapshot: api.Attached) -> None:
        """Take the last reply from a snapshot and reload the values."""
        replies = [message for message in snapshot.messages if message.role == "assistant"]
        # The last reply may consist of calls only: take the last one with text.
        self.last_reply = next(filter(None, (text_of(reply.content) for reply in reversed(replies))), self.last_reply)
        self._ui.spawn(self._refresh())
        if snapshot.session.id != self._session:
            self._session = snapshot.session.id
            self._ui.spawn(self._look_for_key(snapshot.session))

    def see(self, batch: Sequence[AnyEvent]) -> None:
        """Take new events of the session."""
        for event in batch:
            match event:
                case events.AssistantMessage(content=content):
                    self.last_reply = text_of(content) or self.last_reply
                case events.Done() | events.SessionChanged():
                    self._ui.spawn(self._refresh())
                case _:
                    pass

    async def _look_for_key(self, session: api.SessionInfo) -> None:
        """Warn that the session's provider has no API key, before the user writes a prompt that cannot be sent."""
        with suppress(ClientError):
            known = await self._ui.ask(auth.AuthScope(session.id), auth.KeyList)
            vendor = next((each for each in known.providers if each.provider == session.provider), None)
            if vendor is None or vendor.source is not None:
                return
            if vendor.variables:
                words = f"no key for {vendor.title}: run /login, or set {vendor.variables[0]} and restart zot"
                self._ui.say(words, "warn")
            elif vendor.methods:
                self._ui.say(f"you are not logged in to {vendor.title}: run /login {vendor.provider}", "warn")

    async def _refresh(self) -> None:
        with suppress(ClientError):  # outdated values are less annoying than an error line after each run
            await self._ask()

    async def _ask(self) -> None:
        if self._ui.state.session is None:
            return
        about = api.OfSession(self._ui.state.session.id)
        session = await self._ui.ask(about, api.SessionInfo, command="session.get")
        # "Today" is the user's local day; the daemon compares times in UTC.
        midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        since = midnight.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        sums = await self._ui.ask(api.UsageReport(since=since), reports.UsageSums)
        where = await self._ui.ask(about, api.WorkspaceInfo, command="workspace.info")
        known = await self._ui.ask(api.GetModels(session=session.id, provider=session.provider), api.Models)
        window = next((each.context_window for each in known.models if each.id == session.model), 0)
        today = sum(row.cost_usd for row in sums.rows)
        state = self._ui.state
        if state.session is not None and state.session.id == session.id:  # the user may have switched meanwhile
            self._change(replace(state, session=session, cost_today=today, branch=where.branch or "", window=window))
