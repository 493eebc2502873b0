"""The words of a question about what its jail has refused to a command: for the person who decides, and for the model."""

from collections.abc import Sequence

from msgspec.structs import replace

from zotd.core.choices import SESSION
from zotd.core.ports import ToolOutcome
from zotd.permissions.file_grants import named
from zotd.permissions.preview import visible
from zotd.tools.bash import NO_WAY
from zotd.wire.content import Text

ALLOWED = (
    "\n[A person has allowed it: {who} may change {what} {how}. Nothing was run again: what the command did before it was"
    " refused is done, so run again only what is still needed.]"
)


def place_preview(places: Sequence[str], command: str) -> str:
    """Return what clients show of the question. Blocks for a `stat` for each place."""
    asks = f"A command was refused to change {named(places)}, outside of the jail of this session."
    then = "It has ended and is not run again by zot; if you allow it, the model is told, and may run it again."
    return visible(f"{asks}\n{then}\n\n$ {command}")


def allowed_text(places: Sequence[str], scope: str) -> str:
    """Return what the model is told when a person has allowed it once, for the session or always."""
    what = named(places)
    if scope == "once":
        return ALLOWED.format(who="this very command", what=what, how="when it is run once more, unchanged")
    how = "for the rest of this session" if scope == SESSION else "in all sessions"
    return ALLOWED.format(who="every command", what=what, how=how)


def refused_text(reason: str) -> str:
    """Return what the model is told when it stays refused, for this reason; empty: no person could be asked."""
    return f"\n[It stays refused: {reason}.]{NO_WAY}" if reason else NO_WAY


def with_text(outcome: ToolOutcome, text: str) -> ToolOutcome:
    """Return the outcome with this at its end, and nothing left to decide."""
    *before, last = outcome.content
    return replace(
        outcome, content=[*before, Text(f"{last.text}{text}" if isinstance(last, Text) else text)], closed=()
    )
