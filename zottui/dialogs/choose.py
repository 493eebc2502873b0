"""A dialog to choose from a list: of themes, modes, models, search results."""

from collections.abc import Sequence

from zotd.client.humanize import count
from zotd.wire.api import ModelInfo
from zottui.dialogs.answers import Answer, answered
from zottui.dialogs.frame import framed, headed
from zottui.dialogs.keys import named
from zottui.dialogs.listing import Entry, Listing
from zottui.theme import TextRole
from zottui.ui_context import DialogHost, Row

KEYS = (("enter", "choose"), ("esc", "cancel"), ("type", "to filter"))


async def ask(ui: DialogHost, title: str, entries: Sequence[Entry], *, selected: str = "") -> str | None:
    """Let the user choose an entry and return its key; None if they cancel.

    `selected`: key of the entry that is selected at first, by default the first one.
    """
    return await answered(ui, lambda answer: Choose(title, entries, answer, selected=selected))


class Choose:
    """A dialog with a filtered list of entries."""

    has_editor = False

    def __init__(self, title: str, entries: Sequence[Entry], answer: Answer[str], *, selected: str = "") -> None:
        """`answer` gets the key of the chosen entry, or None."""
        self._title = title
        self._listing = Listing(entries, selected=selected)
        self._answer = answer

    def rows(self, width: int, height: int) -> list[Row]:
        """Return the title or the filter, the entries around the selected one, and the key hints."""
        words = self._listing.filter.text
        head = self._listing.filter.row(f"{self._title}: ", width) if words else headed(self._title)
        return framed(head, lambda room: self._listing.rows(width, room), KEYS, width=width, height=height)

    def key(self, name: str, text: str) -> bool:
        """Choose with enter, cancel with escape, else move the selection or edit the filter."""
        match named(name):
            case "enter":
                if (chosen := self._listing.selected) is not None:  # the filter may match nothing
                    self._answer(chosen.key)
                return True
            case "escape":
                self._answer(None)
                return True
            case _:
                return self._listing.key(name, text)


def models(known: Sequence[ModelInfo], now: str = "") -> list[Entry]:
    """Return models as entries with the key `provider/model`.

    `now` is the key of the model in use and comes first. Models without an API key come last. Otherwise the order is
    the daemon's: models used last, then current ones, then those with a successor.
    """

    def rank(one: ModelInfo) -> tuple[bool, bool]:
        return f"{one.provider}/{one.id}" != now, not one.ready

    return [_model(one) for one in sorted(known, key=rank)]


def _model(one: ModelInfo) -> Entry:
    window = f"{count(one.context_window)} tokens" if one.context_window else ""
    ready = "superseded" if one.superseded else ""
    ready = ready if one.ready else "no key"
    key = f"{one.provider}/{one.id}"
    return Entry(key, key, (ready, window, "thinks" if one.reasoning else ""), role=TextRole.MUTED)
