"""The sessions of the daemon, as entries of a list."""

from collections.abc import Callable
from datetime import datetime

from msgspec import structs

from zotd.client import place
from zotd.client.errors import CallError
from zotd.client.humanize import age, money
from zotd.wire import api, events, reports
from zotd.wire.api import SessionInfo
from zotd.wire.events import AnyEvent
from zottui.asking import Refreshing
from zottui.dialogs.listing import Entry
from zottui.theme import TextRole
from zottui.ui_context import UiContext
from zottui.widgets.status import short_path

MOST = 500
"""Sessions that are listed, the newest ones: one page of the daemon."""

STATES = {
    "waiting": ("needs you", TextRole.WARNING),
    "blocked": ("failed", TextRole.ERROR),
    "held": ("paused", TextRole.WARNING),
    "running": ("working", TextRole.ACCENT),
    "idle": ("idle", TextRole.MUTED),
    "closed": ("closed", TextRole.MUTED),
}
"""What people call the states of the wire, the most urgent first; said in words, because colours may be off."""


async def created(desk: UiContext, name: str | None = None) -> str:
    """The id of a new session of the desk's directory, with its environment. Raises `ClientError`."""
    params = api.SessionCreate(cwd=desk.cwd, name=name, env=place.of(desk.env).variables, discard_unused=True)
    return (await desk.ask(params, api.Created)).session.id


class SessionsDialog:
    """What is known of them; follows the topic `sessions`."""

    def __init__(self, desk: UiContext, clock: Callable[[], float]) -> None:
        """`clock`: seconds since the epoch, for ages. Knows nothing before `want`."""
        self.cwd: str | None = desk.cwd
        """The directory whose sessions are listed; None: all."""
        self.is_loaded = False
        self._desk = desk
        self._clock = clock
        self._known: dict[str, SessionInfo] = {}
        """Newest first."""
        self._costs: dict[str, float] = {}
        self._unknown: set[str] = set()
        """Sessions to ask about."""
        self._loading = Refreshing(desk, self._load)
        self._asking = Refreshing(desk, self._ask)

    def want(self) -> None:
        """Ask the daemon for all of them."""
        self._loading.want()

    def get(self, session_id: str) -> SessionInfo | None:
        """What is known of one."""
        return self._known.get(session_id)

    def put(self, info: SessionInfo) -> None:
        """Know this of one."""
        self._known[info.id] = info

    def remove(self, session_id: str) -> None:
        """It is gone."""
        self._known.pop(session_id, None)

    def see(self, event: AnyEvent) -> bool:
        """Take an event; whether it has changed anything here."""
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
        """The sessions of `cwd`: state, name or id, directory, age, cost; newest first, or the most urgent."""
        shown = [info for info in self._known.values() if self.cwd in {None, info.cwd}]
        if by_urgency:
            order = list(STATES)
            shown.sort(key=lambda info: order.index(info.state) if info.state in order else len(order))
        return [self._entry(info) for info in shown]

    def _entry(self, info: SessionInfo) -> Entry:
        word, role = STATES.get(info.state, (info.state, TextRole.MUTED))
        where = short_path(info.cwd, self._desk.env.get("HOME", "")) if self.cwd is None else ""
        cost = self._costs.get(info.id, 0.0)
        notes = (self._age(info), money(cost) if cost else "", where)
        current = self._desk.state.session
        here = " (here)" if current is not None and current.id == info.id else ""
        return Entry(info.id, (info.name or info.id) + here, notes, mark=word, role=role)

    def _age(self, info: SessionInfo) -> str:
        try:
            return age(self._clock() - datetime.fromisoformat(info.updated).timestamp())
        except ValueError:
            return ""

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock()).astimezone().isoformat()

    async def _load(self) -> None:
        page = await self._desk.ask(api.SessionList(cwd=self.cwd, limit=MOST), api.Sessions)
        self._known = {info.id: info for info in page.sessions}
        self.is_loaded = True
        self._desk.redraw()  # the costs are no reason to wait
        sums = await self._desk.ask(api.UsageReport(by="session"), reports.UsageSums)
        self._costs = {row.key: row.cost_usd for row in sums.rows}

    async def _ask(self) -> None:
        while self._unknown:
            key = self._unknown.pop()
            try:
                info = await self._desk.ask(api.OfSession(key), SessionInfo, command="session.get")
            except CallError:  # gone again, or not for us
                continue
            self._known = {key: info} | self._known
