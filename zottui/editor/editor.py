"""The prompt editor: combines buffer, popup, history, pasting and drafts, and provides the layout window."""

from collections.abc import Callable, Mapping, Sequence

from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.cursor_shapes import CursorShapeConfig, ModalCursorShapeConfig
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import vi_navigation_mode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout.containers import Window
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.lexers import Lexer

from zotd.wire.api import Attached
from zottui.choice import ListChoice
from zottui.editor import external
from zottui.editor.buffer import PromptBuffer
from zottui.editor.completion import Popup, Source
from zottui.editor.drafts import Drafts
from zottui.editor.history import HistorySearch, Prompts, prompts_of
from zottui.editor.keys import Action, bindings
from zottui.editor.pasting import Pasting
from zottui.editor.placeholders import EditorDraft, Placeholders, Submission
from zottui.editor.visible import Visible
from zottui.theme import TextRole
from zottui.ui_context import UiContext
from zottui.widgets.cells import POINTER, style

ROWS = 8
"""Most rows; longer text scrolls. Each live row costs 0.8 ms in each frame."""

PROMPT = f"{POINTER} "
"""Prefix of the first row; the others are indented by its width."""

FOLDED_CHARS = 10_000
"""Longer texts from the history or an external editor become one placeholder: each key lays out the whole text."""

_MODES = {
    InputMode.INSERT: "INSERT",
    InputMode.INSERT_MULTIPLE: "INSERT",
    InputMode.NAVIGATION: "NORMAL",
    InputMode.REPLACE: "REPLACE",
    InputMode.REPLACE_SINGLE: "REPLACE",
}


class PromptEditor:
    """The editor of the client; its text belongs to the session that was attached last."""

    def __init__(
        self,
        ui: UiContext,
        *,
        submit: Callable[[Submission, str], bool],
        commands: Callable[[], Sequence[ListChoice]],
        arguments: Mapping[str, Source],
        last_reply: Callable[[], str],
        recall: Callable[[], bool],
        is_vi: bool = False,
    ) -> None:
        """Create an empty editor.

        Args:
            ui: the application.
            submit: gets a non-blank submission and what to do during a run (`queue`, `steer`). If it returns True, the
                editor is cleared.
            commands: returns the available slash commands.
            arguments: completion sources for arguments, by command name without the slash.
            last_reply: returns the model's last reply, for the external editor.
            recall: called by `up` in an empty editor, before the history. May withdraw a queued input into the editor, and
                returns whether it does.
            is_vi: use vi's keys, beginning in INSERT; else those of Emacs.
        """
        self._ui = ui
        self._submit = submit
        self._last_reply = last_reply
        self._recall = recall
        self._session = ""
        # Whether the session's draft is still being read; changes must not overwrite it before.
        self._is_restoring = False
        self._placeholders = Placeholders()
        self.editing_mode = EditingMode.VI if is_vi else EditingMode.EMACS
        """For `Application(editing_mode=…)`."""
        self.cursor: CursorShapeConfig | None = ModalCursorShapeConfig() if is_vi else None
        """For `Application(cursor=…)`; None keeps the terminal's own shape, for Emacs's keys."""
        self.buffer = PromptBuffer(self._placeholders)
        self.pasting = Pasting(ui, self.buffer, self._placeholders)
        self.popup = Popup(ui, self.buffer, commands=commands, arguments=arguments, run=self.submit)
        self.prompts = Prompts()
        """The history for `up` and `down`."""
        self._drafts = Drafts(ui)
        self.control = BufferControl(
            self.buffer,
            lexer=_Marks(self._placeholders),
            input_processors=[Visible()],
            key_bindings=self._bindings(),
        )
        self.window = Window(
            self.control,
            height=lambda: Dimension(min=1, max=ROWS),
            dont_extend_height=True,
            wrap_lines=True,
            get_line_prefix=_line_prefix,
        )
        """The window for the layout."""
        self.buffer.on_text_changed += self._text_changed

    def rows(self) -> int:
        """Return the current height; only while the application runs."""
        columns = get_app().output.get_size().columns
        return self.control.preferred_height(columns, ROWS, wrap_lines=True, get_line_prefix=_line_prefix) or 1

    # --- the text --------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The visible text, with placeholders."""
        return self.buffer.text

    @text.setter
    def text(self, words: str) -> None:
        """Replace the text and put the cursor at its end; undo restores the old text with its pastes."""
        self.prompts.leave()
        self.buffer.replace(words if len(words) <= FOLDED_CHARS else self._placeholders.paste(words))

    @property
    def mode(self) -> str:
        """The mode of vi, `INSERT`, `NORMAL`, `VISUAL` or `REPLACE`; empty with Emacs's keys."""
        if self.editing_mode != EditingMode.VI:
            return ""
        return "VISUAL" if self.buffer.selection_state is not None else _MODES[get_app().vi_state.input_mode]

    def submitted(self) -> Submission:
        """Return what would be sent now, without clearing the editor."""
        return self._placeholders.submission(self.text)

    def submit(self, when_busy: str = "queue") -> None:
        """Send the text, as Enter does. Waits for images that are being read; a blank text is not sent."""
        if self.pasting.is_busy:
            self.pasting.call_when_done(lambda: self.submit(when_busy))
            return
        submission = self.submitted()
        if submission.text.strip() and self._submit(submission, when_busy):
            self.prompts.add(submission.text)
            self.clear()

    def clear(self) -> None:
        """Clear the text, its pastes and the undo history; vi returns to INSERT."""
        self.prompts.leave()
        self.pasting.call_when_done(None)
        self._placeholders.forget()
        get_app().vi_state.reset()
        self.buffer.reset()
        self.buffer.on_text_changed.fire()  # `reset` does not fire it, and the popup and drafts depend on it

    def put_back(self, draft: EditorDraft) -> None:
        """Insert a withdrawn input or a stored draft before the current text."""
        words = self._placeholders.adopted(draft)
        self.buffer.replace(f"{words}\n{self.text}" if self.text else words)

    def give_back(self, draft: EditorDraft) -> None:
        """Put a refused prompt back. In an empty editor it is as if selected: typing replaces it."""
        if self.text:
            self.put_back(draft)
        else:
            self.buffer.give_back(self._placeholders.adopted(draft))

    # --- sessions --------------------------------------------------------------------------------------------------

    def attached(self, snapshot: Attached) -> None:
        """Load the history from a session's snapshot, and for another session its draft.

        Text typed before the first attach belongs to the first session; later text stays with the session it was typed in.
        """
        session = snapshot.session.id
        is_another = session != self._session
        if is_another and self._session:
            self._session = ""  # or `clear` would delete the draft of the session that is left
            self.clear()
            self.prompts.forget()
        self.prompts.load(prompts_of(snapshot.messages))
        if is_another:
            self._session = session
            self._is_restoring = True
            self._ui.spawn(self._restore(session))

    def close(self) -> None:
        """Write the draft and release it for the next client of the session."""
        self._drafts.close()

    async def _restore(self, session: str) -> None:
        draft = await self._drafts.claim(session)
        if self._session != session:
            return  # the user has switched meanwhile; the claimed draft is loaded at the next attach to this session
        self._is_restoring = False
        if draft is not None:
            self.put_back(draft)
            self._ui.say("restored your unsent draft; ctrl+c clears it")
        self._text_changed(self.buffer)
        self._ui.redraw()

    def _text_changed(self, _: Buffer) -> None:
        # Before the first attach there is no session to file a draft under; `attached` files the text later.
        if self._session and not self._is_restoring:
            self._drafts.keep(self._session, self._placeholders.draft(self.text))

    # --- keys ------------------------------------------------------------------------------------------------------

    def _bindings(self) -> KeyBindings:
        actions: dict[str, Action] = {
            "submit": self._enter,
            "newline": lambda _: self.buffer.newline(copy_margin=False),
            "older": self._older,
            "newer": self._newer,
            "search": lambda _: self._search(),
            "edit": lambda _: self._ui.spawn(self._edit()),
            "paste-image": lambda _: self.pasting.paste_image(),
            "undo": lambda _: self.buffer.undo(),
            "redo": lambda _: self.buffer.redo(),
        }
        filters = {"paste-image": ~vi_navigation_mode, "search": ~vi_navigation_mode, "redo": vi_navigation_mode}
        made = bindings(actions, filters)
        made.add(Keys.BracketedPaste)(lambda event: self.pasting.paste(event.data))
        return made

    def _enter(self, _: KeyPressEvent) -> None:
        # A backslash before Enter works in every terminal, also where Alt+Enter and Shift+Enter do not.
        if self.buffer.document.text_before_cursor.endswith("\\"):
            self.buffer.delete_before_cursor()
            self.buffer.newline(copy_margin=False)
        else:
            self.submit()

    def _older(self, event: KeyPressEvent) -> None:
        if not self.buffer.document.on_first_line:
            self.buffer.cursor_up(count=event.arg)
        elif self.text or not self._recall():
            self._browse(self.prompts.older(self.text), is_older=True)

    def _newer(self, event: KeyPressEvent) -> None:
        if not self.buffer.document.on_last_line:
            self.buffer.cursor_down(count=event.arg)
        else:
            self._browse(self.prompts.newer(self.text), is_older=False)

    def _browse(self, words: str | None, *, is_older: bool) -> None:
        """Show a prompt of the history, with the cursor on the line from which the same key continues."""
        if words is None:
            return
        if len(words) > FOLDED_CHARS and words != self.text:
            words = self._placeholders.paste(words)
        first_line_end = words.find("\n") if is_older and "\n" in words else len(words)
        self.buffer.replace(words, first_line_end)
        self.popup.dismiss()

    def _search(self) -> None:
        def take(words: str) -> None:
            self.text = words
            self.popup.dismiss()

        self._ui.open(HistorySearch(self._ui, take))

    async def _edit(self) -> None:
        """Edit the text in the user's own editor."""
        before = self._placeholders.expanded(self.text)
        after = await external.edited(self._ui, before, self._last_reply())
        if after != before:
            self.text = self._placeholders.collapsed(after).rstrip("\n")
            self.popup.dismiss()


class _Marks(Lexer):
    """Highlights placeholders."""

    def __init__(self, placeholders: Placeholders) -> None:
        self._placeholders = placeholders

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        def line(number: int) -> StyleAndTextTuples:
            text, at = document.lines[number], 0
            pieces: StyleAndTextTuples = []
            for start, end in self._placeholders.spans(text):
                pieces += [("", text[at:start]), (style(TextRole.ACCENT), text[start:end])]
                at = end
            return [*pieces, ("", text[at:])]

        return line


def _line_prefix(number: int, wrapped: int) -> StyleAndTextTuples:
    is_first = number == 0 and wrapped == 0
    return [(style(TextRole.ACCENT), PROMPT)] if is_first else [("", " " * len(PROMPT))]
