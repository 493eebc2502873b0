"""Commands about panels of extensions."""

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import session_of
from zotd.contributions.view import Extensions, OfPanel
from zotd.wire import api, ext
from zotd.wire.errors import Code, CommandError

KEYS = (
    "up", "down", "left", "right", "enter", "esc", "tab", "pageup", "pagedown", "home", "end", "backspace", "delete",
    "rune",
)  # fmt: skip
"""Keys that a panel receives; `rune` comes with its text (`docs/extensions.md`)."""

MAX_CELLS = 10_000
"""Largest panel in columns or rows; a client that reports more has a bug."""


async def key(call: Invocation, params: api.PanelKey) -> None:
    """Send a key to the extension that owns the panel."""
    if params.key not in KEYS:
        raise CommandError(Code.BAD_REQUEST, f'unknown panel key "{params.key}"; there are {" ".join(KEYS)}')
    extensions, owner = await _panel(call, params.session, params.panel_id)
    _send(extensions, owner, ext.PanelKey(params.panel_id, params.key, params.text))


async def resize(call: Invocation, params: api.PanelResize) -> None:
    """Tell the panel's owner the size of the panel."""
    if not (0 < params.width <= MAX_CELLS and 0 < params.height <= MAX_CELLS):
        raise CommandError(Code.BAD_REQUEST, f"a panel must have 1 to {MAX_CELLS} columns and 1 to {MAX_CELLS} rows")
    extensions, owner = await _panel(call, params.session, params.panel_id)
    _send(extensions, owner, ext.PanelResize(params.panel_id, params.width, params.height))


async def close(call: Invocation, params: api.PanelClose) -> None:
    """Close a panel, and tell its owner if it is still running."""
    extensions, owner = await _panel(call, params.session, params.panel_id)
    extensions.send(owner, ext.PanelClosed(params.panel_id))
    extensions.ui_state.close(owner, params.panel_id)


async def _panel(call: Invocation, session_id: str, panel_id: str) -> tuple[Extensions, str]:
    """Return the session's extensions and the one that owns the panel."""
    session = await session_of(call, session_id)
    owner = session.extensions.ui_state.owner(panel_id) if session.extensions else None
    if session.extensions is None or owner is None:
        raise CommandError(Code.NOT_FOUND, f'no panel "{panel_id}" is open in this session')
    return session.extensions, owner


def _send(extensions: Extensions, owner: str, frame: OfPanel) -> None:
    if not extensions.send(owner, frame):
        raise CommandError(Code.CONFLICT, f"{owner} is not running, so its panel does not respond; close it")
