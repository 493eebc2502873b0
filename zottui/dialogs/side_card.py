"""The card of `/btw`: a question beside the conversation, and its answer as it comes."""

from zotd import ids
from zotd.client.errors import ClientError
from zotd.client.humanize import money
from zotd.wire import api
from zotd.wire.events import AnyEvent, SideDelta
from zottui.dialogs.frame import framed, headed
from zottui.dialogs.keys import named
from zottui.theme import TextRole
from zottui.ui_context import Row, UiContext
from zottui.widgets.cells import folded, piece

KEYS = (("esc", "close"), ("pgup pgdn", "scroll"))

MOST_ROWS = 16
"""Highest card: the conversation stays in sight."""


class SideCard:
    """A dialog with one question and its answer; the editor below it stays usable. Open it, then `run` it."""

    has_editor = True

    def __init__(self, ui: UiContext, session: str, question: str) -> None:
        """Ask `question` in this session."""
        self._ui = ui
        self._session = session
        self._question = question
        self._key = ids.new("q")
        self._text = ""
        self._detail = "thinking…"
        self._scrolled = 0
        """Rows above the end that are at the bottom of the card."""

    async def run(self) -> None:
        """Ask, and show the answer or why there is none."""
        wanted = api.SideQuestion(session=self._session, question=self._question, key=self._key)
        try:
            answer = await self._ui.ask(wanted, api.SideAnswer, timeout_s=None)
        except ClientError as error:
            self._text, self._detail = str(error), "no answer"
        else:
            self._text, self._detail = answer.text, f"{answer.model}, {money(answer.tokens.cost_usd)}"
        self._ui.redraw()

    def see(self, event: AnyEvent) -> None:
        """Take a piece of the answer."""
        if isinstance(event, SideDelta) and event.key == self._key:
            self._text += event.delta
            self._ui.redraw()

    def rows(self, width: int, height: int) -> list[Row]:
        """Return the question, the newest part of the answer or what was scrolled to, and the key hints."""
        lines = [[piece(TextRole.TEXT, line)] for line in folded(self._text, width)]

        def body(room: int) -> list[Row]:
            self._scrolled = min(self._scrolled, max(len(lines) - room, 0))
            end = len(lines) - self._scrolled
            return lines[max(end - room, 0) : end]

        head = headed(f"by the way: {self._question}", self._detail)
        return framed(head, body, KEYS, width=width, height=min(height, MOST_ROWS, len(lines) + 2))

    def key(self, name: str, text: str) -> bool:
        """Close with escape, scroll; other keys go to the editor."""
        del text
        match named(name):
            case "escape":
                self._ui.close(self)
            case "pageup":
                self._scrolled += MOST_ROWS // 2
            case "pagedown":
                self._scrolled = max(self._scrolled - MOST_ROWS // 2, 0)
            case _:
                return False
        self._ui.redraw()
        return True


async def ask_beside(ui: UiContext, session: str, question: str) -> None:
    """Open the card of a question."""
    card = SideCard(ui, session, question)
    ui.open(card)
    ui.redraw()
    await card.run()
