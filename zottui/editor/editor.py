"""The editor as the rest of the client sees it: where it stands in the layout, and what goes in and out."""

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
"""Height up to which it grows with its text; then it scrolls. A live row costs 0.8 ms in every frame."""

PROMPT = f"{POINTER} "
"""Before the first row; the others are indented by as much."""

FOLDED_CHARS = 10_000
"""A text that comes back longer than this, from history or an editor, is one placeholder: each key lays out all of it."""

_MODES = {
    InputMode.INSERT: "INSERT",
    InputMode.INSERT_MULTIPLE: "INSERT",
    InputMode.NAVIGATION: "NORMAL",
    InputMode.REPLACE: "REPLACE",
    InputMode.REPLACE_SINGLE: "REPLACE",
}


class PromptEditor:
    """One for the life of the program; its text belongs to the session that was attached last."""

    def __init__(
        self,
        desk: UiContext,
        *,
        submit: Callable[[Submission, str], bool],
        commands: Callable[[], Sequence[ListChoice]],
        arguments: Mapping[str, Source],
        last_reply: Callable[[], str],
        recall: Callable[[], bool],
        is_vi: bool = False,
    ) -> None:
        """An empty editor.

        Args:
            desk: Where it stands.
            submit: Gets what Enter sends, which is not blank, and what to do while something runs (`queue`, `steer`).
                Says whether it was taken: then the editor is emptied, else it stays as it is.
            commands: The slash commands that there are now.
            arguments: Where the choices come from for what stands behind `/NAME `, by name without the slash.
            last_reply: What the model said last, for the external editor.
            recall: Asked by `up` in an empty editor, before history: may put a waiting input into it, and says whether
                it did.
            is_vi: The keys are vi's, beginning in INSERT; else Emacs's.
        """
        self._desk = desk
        self._submit = submit
        self._last_reply = last_reply
        self._recall = recall
        self._session = ""
        self._is_restoring = False
        """The draft of the session is being read: it must not be overwritten before."""
        self._placeholders = Placeholders()
        self.editing_mode = EditingMode.VI if is_vi else EditingMode.EMACS
        """For `Application(editing_mode=…)`."""
        self.cursor: CursorShapeConfig | None = ModalCursorShapeConfig() if is_vi else None
        """For `Application(cursor=…)`; with Emacs's keys the terminal's own shape stays."""
        self.buffer = PromptBuffer(self._placeholders)
        self.pasting = Pasting(desk, self.buffer, self._placeholders)
        self.popup = Popup(desk, self.buffer, commands=commands, arguments=arguments, run=self.submit)
        self.prompts = Prompts()
        """What `up` goes through; prompts that others send to the session may be added."""
        self._drafts = Drafts(desk)
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
        """What belongs into the layout."""
        self.buffer.on_text_changed += self._text_changed

    def rows(self) -> int:
        """Its height now; only while the application runs."""
        columns = get_app().output.get_size().columns
        return self.control.preferred_height(columns, ROWS, wrap_lines=True, get_line_prefix=_line_prefix) or 1

    # --- the text --------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """What is shown, with placeholders."""
        return self.buffer.text

    @text.setter
    def text(self, words: str) -> None:
        """Show `words` instead, the cursor at their end; undo brings back what was there, with what was pasted."""
        self.prompts.leave()
        self.buffer.replace(words if len(words) <= FOLDED_CHARS else self._placeholders.paste(words))

    @property
    def mode(self) -> str:
        """vi's: `INSERT`, `NORMAL`, `VISUAL` or `REPLACE`; empty with Emacs's keys."""
        if self.editing_mode != EditingMode.VI:
            return ""
        return "VISUAL" if self.buffer.selection_state is not None else _MODES[get_app().vi_state.input_mode]

    def submitted(self) -> Submission:
        """What the daemon would get now; the editor keeps it."""
        return self._placeholders.submission(self.text)

    def submit(self, when_busy: str = "queue") -> None:
        """What Enter does. While an image is being read it waits for that; a blank editor sends nothing."""
        if self.pasting.is_busy:
            self.pasting.when_done = lambda: self.submit(when_busy)
            return
        submission = self.submitted()
        if submission.text.strip() and self._submit(submission, when_busy):
            self.prompts.add(submission.text)
            self.clear()

    def clear(self) -> None:
        """Hold nothing, and remember nothing of what was there; vi is in INSERT again."""
        self.prompts.leave()
        self.pasting.when_done = None
        self._placeholders.forget()
        get_app().vi_state.reset()
        self.buffer.reset()
        self.buffer.on_text_changed.fire()  # a reset is silent

    def put_back(self, draft: EditorDraft) -> None:
        """Put what was taken back, or was a draft before, in front of what is here now."""
        words = self._placeholders.adopted(draft)
        self.buffer.replace(f"{words}\n{self.text}" if self.text else words)

    def give_back(self, draft: EditorDraft) -> None:
        """The same for what was sent in vain; if nothing else is here, what is typed next replaces it."""
        if self.text:
            self.put_back(draft)
        else:
            self.buffer.give_back(self._placeholders.adopted(draft))

    # --- sessions --------------------------------------------------------------------------------------------------

    def attached(self, snapshot: Attached) -> None:
        """Take the prompts of a session from its snapshot, and when it is another session its draft.

        What was typed before the first session belongs to that; what is typed in another stays with it.
        """
        session = snapshot.session.id
        is_another = session != self._session
        if is_another and self._session:
            self._session = ""  # else clearing would remove the draft of a session that is only left
            self.clear()
            self.prompts.forget()
        self.prompts.load(prompts_of(snapshot.messages))
        if is_another:
            self._session = session
            self._is_restoring = True
            self._desk.spawn(self._restore(session))

    def close(self) -> None:
        """Write the draft for the last time; whoever opens the session next gets it."""
        self._drafts.close()

    async def _restore(self, session: str) -> None:
        draft = await self._drafts.claim(session)
        if self._session != session:
            return  # it is this client's now, and here again when the session is
        self._is_restoring = False
        if draft is not None:
            self.put_back(draft)
            self._desk.say("restored your unsent draft; ctrl+c clears it")
        self._text_changed(self.buffer)
        self._desk.redraw()

    def _text_changed(self, _: Buffer) -> None:
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
            "edit": lambda _: self._desk.spawn(self._edit()),
            "paste-image": lambda _: self.pasting.paste_image(),
            "undo": lambda _: self.buffer.undo(),
            "redo": lambda _: self.buffer.redo(),
        }
        filters = {"paste-image": ~vi_navigation_mode, "search": ~vi_navigation_mode, "redo": vi_navigation_mode}
        made = bindings(actions, filters)
        made.add(Keys.BracketedPaste)(lambda event: self.pasting.paste(event.data))
        return made

    def _enter(self, _: KeyPressEvent) -> None:
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
        """Show another prompt, the cursor where the next press of the same key goes on."""
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

        self._desk.open(HistorySearch(self._desk, take))

    async def _edit(self) -> None:
        """Let the user's own editor have the text."""
        before = self._placeholders.expanded(self.text)
        after = await external.edited(self._desk, before, self._last_reply())
        if after != before:
            self.text = self._placeholders.collapsed(after).rstrip("\n")
            self.popup.dismiss()


class _Marks(Lexer):
    """Shows placeholders as what they are."""

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
