"""Choosing from a list: themes, modes, models, whatever has names."""

from collections.abc import Sequence

from zotd.client.humanize import count
from zotd.wire.api import ModelInfo
from zottui.dialogs.answers import Answer, answered
from zottui.dialogs.frame import framed, headed
from zottui.dialogs.keys import named
from zottui.dialogs.listing import Entry, Listing
from zottui.theme import TextRole
from zottui.ui_context import Row, UiContext

KEYS = (("enter", "choose"), ("esc", "cancel"), ("type", "to filter"))


async def ask(desk: UiContext, title: str, entries: Sequence[Entry], *, selected: str = "") -> str | None:
    """The key of the entry that the user chooses; None when they leave.

    `selected`: the key of the one that it begins with, by default the first.
    """
    return await answered(desk, lambda answer: Choose(title, entries, answer, selected=selected))


class Choose:
    """The list, as a dialog."""

    has_editor = False

    def __init__(self, title: str, entries: Sequence[Entry], answer: Answer[str], *, selected: str = "") -> None:
        """`answer` is given the key of what is chosen."""
        self._title = title
        self._listing = Listing(entries, selected=selected)
        self._answer = answer

    def rows(self, width: int, height: int) -> list[Row]:
        """As `Dialog` says."""
        words = self._listing.filter.text
        head = self._listing.filter.row(f"{self._title}: ", width) if words else headed(self._title)
        return framed(head, lambda room: self._listing.rows(width, room), KEYS, width=width, height=height)

    def key(self, name: str, text: str) -> bool:
        """As `Dialog` says."""
        match named(name):
            case "enter":
                if (chosen := self._listing.selected) is not None:
                    self._answer(chosen.key)
                return True
            case "escape":
                self._answer(None)
                return True
            case _:
                return self._listing.key(name, text)


def models(known: Sequence[ModelInfo], now: str = "") -> list[Entry]:
    """Models as entries whose key is `provider/model`.

    First `now`, the key of the one in use; then those of its vendor, if they could answer at once; then others that
    could, and those without a key.
    """
    vendor = now.partition("/")[0]

    def rank(one: ModelInfo) -> tuple[bool, bool, bool]:
        return f"{one.provider}/{one.id}" != now, not one.ready, one.provider != vendor

    return [_model(one) for one in sorted(known, key=rank)]


def _model(one: ModelInfo) -> Entry:
    window = f"{count(one.context_window)} tokens" if one.context_window else ""
    ready = "" if one.ready else "no key"
    key = f"{one.provider}/{one.id}"
    return Entry(key, key, (ready, window, "thinks" if one.reasoning else ""), role=TextRole.MUTED)
