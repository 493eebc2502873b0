"""The title of the terminal's window."""

from zottui.state import ViewState
from zottui.widgets.cells import clean, cut

TITLE_CELLS = 60
"""Most columns of a title. Tabs are narrower, window lists not much wider."""


def title(state: ViewState) -> str:
    """Return the session's name, with a mark when it runs, needs the user or has unseen results."""
    session = state.session
    name = clean(session.name).strip() if session else ""
    words = cut(f"zot: {name}" if name else "zot", TITLE_CELLS)
    if state.approvals:
        return f"● needs you: {cut(name or 'zot', TITLE_CELLS)}"
    if state.run is not None:
        return f"◐ {words}"
    return f"● {words}" if state.calls_you else words
