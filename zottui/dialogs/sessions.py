"""The daemon's sessions as list entries, kept up to date by events."""

from collections.abc import Callable
from datetime import datetime

from msgspec import structs

from zotd.client import place
from zotd.client.errors import CallError
from zotd.client.families import in_families, indented
from zotd.client.humanize import age, money
from zotd.client.worktree_names import worktree_of, worktrees_home
from zotd.wire import api, events, reports
from zotd.wire.api import SessionInfo
from zotd.wire.events import AnyEvent
from zottui.asking import Refreshing
from zottui.dialogs.listing import Entry
from zottui.theme import TextRole
from zottui.ui_context import UiContext
from zottui.widgets.cells import clean
from zottui.widgets.status import short_path

MOST = 500
"""Most sessions in the list, the newest ones: one page of the daemon's answer."""

STATES = {
    "waiting": ("needs you", TextRole.WARNING),
    "blocked": ("failed", TextRole.ERROR),
    "held": ("paused", TextRole.WARNING),
    "running": ("working", TextRole.ACCENT),
    "idle": ("idle", TextRole.MUTED),
    "closed": ("closed", TextRole.MUTED),
}
"""Labels for the wire's session states, the most urgent first. In words, because colours may be off."""


async def created(ui: UiContext, name: str | None = None) -> str:
    """Create a session with the client's directory and environment, and return its id. Raises `ClientError`."""
    params = api.SessionCreate(cwd=ui.cwd, name=name, env=place.of(ui.env).variables, discard_unused=True)
    return (await ui.ask(params, api.Created)).session.id


class SessionsDialog:
    """Loads the sessions and follows the events of the topic `sessions`."""

    def __init__(self, ui: UiContext, clock: Callable[[], float], *, cwd: str | None) -> None:
        """Load nothing before `want`. `clock` returns seconds since the epoch, for ages; for `cwd` see the attribute."""
        self.cwd = cwd
        """Lists the sessions of this directory; None: of all directories."""
        self.is_loaded = False
        self._ui = ui
        self._clock = clock
        # Newest first.
        self._known: dict[str, SessionInfo] = {}
        self._costs: dict[str, float] = {}
        self._worktrees = worktrees_home(ui.env)
        # By directory; kept, because finding them looks at the disk.
        self._places: dict[str, str] = {}
        # Ids of new sessions whose details are still to be requested.
        self._unknown: set[str] = set()
        self._loading = Refreshing(ui, self._load)
        self._asking = Refreshing(ui, self._ask)

    def want(self) -> None:
        """Request the list from the daemon; the screen is drawn again when it arrives."""
        self._loading.want()

    def show_directory(self, cwd: str | None) -> None:
        """List the sessions of another directory, or of all with None; requests them from the daemon."""
        self.cwd = cwd
        self.want()

    def get(self, session_id: str) -> SessionInfo | None:
        """Return a session's details; None if it is not loaded."""
        return self._known.get(session_id)

    def put(self, info: SessionInfo) -> None:
        """Add or replace a session."""
        self._known[info.id] = info

    def remove(self, session_id: str) -> None:
        """Drop a deleted session from the list."""
        self._known.pop(session_id, None)

    def see(self, event: AnyEvent) -> bool:
        """Apply an event; return whether it has changed the list."""
        match event:
            case events.SessionAdded(session=str(key)):
                self._unknown.add(key)
                self._asking.want()
            case events.SessionUpdated(session=str(key)) if known := self._known.get(key):
                self.put(structs.replace(known, name=event.name, state=event.state, updated=self._now()))
            case events.SessionRemoved(session=str(key)):
                self.remove(key)
            case _:
                return False
        return True

    def entries(self, *, by_urgency: bool = False) -> list[Entry]:
        """Return entries with state, name or id, age, cost and directory: newest first, or the most urgent first."""
        shown = [info for info in self._known.values() if self.cwd in {None, info.cwd}]
        if by_urgency:
            order = list(STATES)
            shown.sort(key=lambda info: order.index(info.state) if info.state in order else len(order))
        families = in_families(shown, _id, _parent)
        # A subagent whose parent is too old for the list is left out as well.
        return [self._entry(info, depth) for info, depth in families if depth or info.parent is None]

    def _entry(self, info: SessionInfo, depth: int) -> Entry:
        word, role = STATES.get(info.state, (info.state, TextRole.MUTED))
        where = " ".join(filter(None, (clean(info.user), self._where(info.cwd) if self.cwd is None else "")))
        cost = self._costs.get(info.id, 0.0)
        notes = (self._age(info), money(cost) if cost else "", where)
        current = self._ui.state.session
        here = " (here)" if current is not None and current.id == info.id else ""
        return Entry(info.id, indented(info.name or info.id, depth) + here, notes, mark=word, role=role)

    def _where(self, cwd: str) -> str:
        """Return the worktree that a session works in, or else its directory."""
        if cwd not in self._places:
            worktree = worktree_of(cwd, self._worktrees)
            self._places[cwd] = clean(worktree.label) if worktree else short_path(cwd, self._ui.env.get("HOME", ""))
        return self._places[cwd]

    def _age(self, info: SessionInfo) -> str:
        try:
            return age(self._clock() - datetime.fromisoformat(info.updated).timestamp())
        except ValueError:
            return ""

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock()).astimezone().isoformat()

    async def _load(self) -> None:
        page = await self._ui.ask(api.SessionList(cwd=self.cwd, limit=MOST), api.Sessions)
        # Apart: subagents must not displace the sessions that people have begun.
        below = await self._ui.ask(api.SessionList(cwd=self.cwd, limit=MOST, subagents=True), api.Sessions)
        known = {info.id: info for info in page.sessions}
        self._known = known | {info.id: info for info in below.sessions if info.parent is not None}
        self.is_loaded = True
        self._ui.redraw()  # the sums take longer than the list; do not wait for them
        sums = await self._ui.ask(api.UsageReport(by="session"), reports.UsageSums)
        self._costs = {row.key: row.cost_usd for row in sums.rows}

    async def _ask(self) -> None:
        while self._unknown:
            key = self._unknown.pop()
            try:
                info = await self._ui.ask(api.OfSession(key), SessionInfo, command="session.get")
            except CallError:  # deleted already, or not visible to this client
                continue
            self._known = {key: info} | self._known  # a new session comes first


def _id(info: SessionInfo) -> str:
    return info.id


def _parent(info: SessionInfo) -> str | None:
    return None if info.parent is None else info.parent.session
