"""The terminal client: connects the daemon's events, the user's keys and the screen.

link -> reduce -> state -> screen (the rows below)
               -> effects -> scrollback, editor, notifications
keys -> commands, dialogs, submitter -> UiContext (this class) -> link
"""

import asyncio
import sys
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TypeVar

from prompt_toolkit.styles import DynamicStyle, Style

from zotd.client.connection import CALL_S
from zotd.client.errors import ClientError
from zotd.client.follow import Disconnected, Item
from zotd.wire import api
from zotd.wire.base import Frozen
from zotd.wire.events import AnyEvent, ExtState
from zottui.attention import TerminalFocus
from zottui.blocks import Block, NoteLine
from zottui.choice import ListChoice
from zottui.commands import COMMANDS
from zottui.commands.command import UsageError, arguments
from zottui.dialogs.approval import Approval
from zottui.dialogs.panel import Panels
from zottui.dialogs.questions import ApprovalDialogs
from zottui.dialogs.watching import tell_beside, watching
from zottui.editor.editor import PromptEditor
from zottui.editor.placeholders import EditorDraft, Submission
from zottui.effects import Alert, Effect, InsertText, Print
from zottui.figures import Figures
from zottui.following import SessionFollower
from zottui.key_actions import KeyActions
from zottui.lines import in_terminal
from zottui.link import SessionLink
from zottui.pacing import Pace
from zottui.printer import Inline
from zottui.reduce import reduce
from zottui.screen import Parts, Room, Screen
from zottui.scrollback import Scrollback
from zottui.setup import Setup
from zottui.startup import Startup
from zottui.state import ViewState
from zottui.submit import Submitter
from zottui.task_group import BackgroundTasks
from zottui.terminal.device import Terminal
from zottui.terminal.environment import reflows, understands_osc
from zottui.terminal.keyboard import ESCAPE_S, Keyboard
from zottui.theme import TextRole, Theme
from zottui.ui_context import Dialog, Row
from zottui.widgets.cells import cut, piece
from zottui.widgets.live import activity
from zottui.widgets.status import status
from zottui.widgets.title import title

T = TypeVar("T", bound=Frozen)

TURN_S = 0.125
"""Seconds between two frames of the spinner and of elapsed times during a run. Without a run nothing is redrawn."""


class App:  # noqa: PLR0904  (implements `UiContext`)
    """The running client. Implements `UiContext` for keys, commands and dialogs."""

    def __init__(self, setup: Setup) -> None:
        """Build the parts; draws nothing before `run`."""
        self.state = ViewState()
        self.use_theme(setup.theme)
        self.env = setup.env
        self._cwd = setup.cwd
        self._link = SessionLink(setup.env)
        self._dialogs: list[Dialog] = []
        self._tasks = BackgroundTasks(self.fail)
        self._follower = SessionFollower(self, self._link)
        self._failure: Exception | None = None
        # Set during a run, when the spinner and elapsed times change.
        self._works = asyncio.Event()
        self._questions = ApprovalDialogs(self)
        self._panels = Panels(self)
        self._figures = Figures(self, self._change)
        self._submitter = Submitter(self, self._is_own, lambda: self.editor)  # a lambda: the editor is created below
        self._attention = TerminalFocus(self)
        self.editor = PromptEditor(
            self,
            submit=self._submitter.submit,
            commands=lambda: self._submitter.commands,
            arguments=arguments(self, COMMANDS),
            last_reply=lambda: self.last_reply,
            recall=self._submitter.recall,
            is_vi=setup.is_vi,
        )
        self._screen = Screen(
            Parts(
                live=self._live_rows,
                status=self._status_row,
                dialog=lambda: self.dialog,
                editor=self.editor.window,
                editor_rows=self.editor.rows,
                room=self._room,
            )
        )
        self._key_actions = KeyActions(self)
        keyboard = Keyboard(sys.stdin, on_focus=self._focused, on_answer=self._caught_up, typed=setup.typed)
        self._application: Inline[None] = Inline(
            self._screen.layout,
            style=DynamicStyle(lambda: self._style),
            key_bindings=self._key_actions.bindings,
            input=keyboard,
            reflows=reflows(setup.env),
            pace=(pace := Pace(asks=understands_osc(setup.env), expect=setup.expect)),
        )
        self._key_actions.dialogs.watch(self._application.key_processor)
        self.editor.buffer.on_text_changed += lambda buffer: self._attention.typing(bool(buffer.text))
        self._application.ttimeoutlen = ESCAPE_S
        self._application.editing_mode = self.editor.editing_mode
        if self.editor.cursor is not None:
            self._application.cursor = self.editor.cursor
        self._application.before_render += lambda _: self._screen.prepare()
        self._terminal = Terminal(self._application.output, setup.env, pace.settled)
        self._scrollback = Scrollback(self._application.print_above)

    # --- life cycle ---------------------------------------------------------------------------------------------------

    async def run(self, opening: "asyncio.Future[Startup]", first: str = "", *, goes_on: bool = False) -> str:
        """Show the session that `opening` finds until the user leaves; return the text to print after that.

        Submits `first` as if the user had typed it; with `goes_on`, after it has continued a held session.

        Raises:
            ClientError: there is no session to show.
            Exception: the terminal is gone (`OSError`, `EOFError`), or a bug; after the draft is saved and all is restored.
        """
        # prompt_toolkit's own handler waits for Enter, and would do so in a loop once the terminal is gone.
        asyncio.get_running_loop().set_exception_handler(self._crashed)
        async with self._tasks.running():
            self._follower.open(opening, goes_on=goes_on)
            _ = self.begin(self._turn())
            if first:
                self.submit(first)
            try:
                with self._terminal.prepared(self._application.begin_again):  # restores the modes even after a crash
                    await self._application.run_async(handle_sigint=False, set_exception_handler=False)
            except Exception as error:  # noqa: BLE001  (save the draft first, then raise)
                self._failure = self._failure or error
            finally:
                # Put unsent prompts into the editor before it closes: closing writes the editor's text as the draft.
                for unsent in await self._submitter.leaving():
                    self.editor.put_back(unsent)
                self.editor.close()
                self._follower.close()
        if self._failure is not None:
            raise self._failure
        return self._follower.farewell()

    def begin(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        """Start a task that is cancelled at the latest when the application ends."""
        return self._tasks.begin(work)

    def _crashed(self, _: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        """Handle an exception of a callback or of a task that is not awaited, mostly a write to a closed terminal."""
        error = context.get("exception")
        self.fail(error if isinstance(error, Exception) else RuntimeError(context["message"]))

    def fail(self, error: Exception) -> None:
        """Leave, and have `run` raise this error. Later errors are ignored: they mostly follow from the first."""
        self._failure = self._failure or error
        self.leave()

    async def _turn(self) -> None:
        """Redraw the spinner and elapsed times while a run is active."""
        while True:
            await self._works.wait()
            self.redraw()
            await asyncio.sleep(TURN_S)

    # --- events -------------------------------------------------------------------------------------------------------

    def hear(self, event: AnyEvent) -> None:
        """Take an event of the daemon's topics, for the state and for dialogs that follow all sessions."""
        self._change(*reduce(self.state, [event], self.now()))
        if isinstance(event, ExtState):
            self._submitter.learn()
        for dialog in watching(self._dialogs):
            dialog.see(event)

    def take(self, item: Item) -> None:
        """Take a snapshot, a batch of events or the loss of the connection. All changes by the session come through here."""
        self._change(*reduce(self.state, item, self.now()))
        match item:
            case api.Attached():
                self._submitter.attached()
                self._attention.attached()
                self._figures.attached(item)
                self.editor.attached(item)
                self._follower.attached(item)
            case Disconnected():
                self._submitter.lost()
            case _:
                tell_beside(self._dialogs, item)
                self._figures.see(item)
                self._follower.see()

    def _change(self, state: ViewState, effects: Sequence[Effect] = ()) -> None:
        self.state = state
        for effect in effects:
            self._carry_out(effect)
        (self._works.clear if state.run is None else self._works.set)()
        self._questions.look()
        self._panels.look()
        self._terminal.title(title(state))
        self.redraw()

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Print(blocks=blocks):
                self.print(*blocks)
            case InsertText(text=words):
                self.edit(words)
            case Alert(text=words):
                self._terminal.notify(words)

    # --- UiContext ----------------------------------------------------------------------------------------------------

    @property
    def dialog(self) -> Dialog | None:
        """The dialog that gets the keys: the one that was opened last."""
        return self._dialogs[-1] if self._dialogs else None

    @property
    def theme(self) -> Theme:
        """Colours of everything that is drawn from now on."""
        return self._theme

    def use_theme(self, theme: Theme) -> None:
        """Draw with other colours from now on; the scrollback keeps its own."""
        self._theme = theme
        # Built once for each theme: the printer repaints all rows when the style object changes.
        self._style = Style.from_dict(theme.style())

    @property
    def learnt(self) -> Sequence[ListChoice]:
        """Slash commands of the daemon, extensions and skills."""
        return self._submitter.learnt

    @property
    def last_reply(self) -> str:
        """The model's last reply as Markdown; empty if there is none."""
        return self._figures.last_reply

    @property
    def cwd(self) -> str:
        """The session's directory; before a session is attached, the client's."""
        return self.state.session.cwd if self.state.session is not None else self._cwd

    @property
    def text(self) -> str:
        """The editor's text, with placeholders for long pastes."""
        return self.editor.text

    def edit(self, words: str) -> None:
        """Replace the editor's text; undo restores it."""
        self.editor.text = words

    def now(self) -> float:
        """Return the monotonic clock in seconds; all times in the state use it."""
        return time.monotonic()

    async def ask(
        self, params: Frozen, result: type[T], *, command: str | None = None, timeout_s: float | None = CALL_S
    ) -> T:
        """Send a command to the daemon and return its answer; raises `ClientError`."""
        answer = await self._link.ask(params, result, command=command, timeout_s=timeout_s)
        # Own decisions need no line "approved by …": the call's card shows the outcome.
        if isinstance(params, api.Approve):
            self._is_own(params.approval)
        return answer

    async def administer(self, params: Frozen, result: type[T], *, command: str | None = None) -> T:
        """Like `ask`, with the role `admin` on a connection of its own."""
        return await self._link.administer(params, result, command=command)

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        """Run a coroutine in the background; its `ClientError`, `UsageError` or `OSError` is printed as a note."""
        # A task that is cancelled before its first step never awaits `work`; close it, or Python warns about it.
        self.begin(self._guarded(work)).add_done_callback(lambda _: work.close())

    async def _guarded(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except (ClientError, UsageError, OSError) as error:
            self.say(str(error), "error")

    def say(self, words: str, level: str = "info") -> None:
        """Print a note into the scrollback; `level` is `info`, `success`, `warn` or `error`."""
        self.print(NoteLine(in_terminal(words), level))

    def print(self, *blocks: Block) -> None:
        """Print finished blocks into the scrollback."""
        self._scrollback.print(blocks, self._room().columns, self.theme)

    def open(self, dialog: Dialog) -> None:
        """Show a dialog above the open ones and give it the keys."""
        self._dialogs.append(dialog)
        self._screen.focus()
        self.redraw()

    def close(self, dialog: Dialog) -> None:
        """Remove a dialog; no-op if it is not open."""
        if dialog in self._dialogs:
            self._dialogs.remove(dialog)
            self._screen.focus()
            self.redraw()

    def redraw(self) -> None:
        """Schedule a frame."""
        self._application.invalidate()

    def submit(self, text: str, when_busy: str = "queue") -> None:
        """Submit `text` as if the user had typed it and pressed enter."""
        self._submitter.submit(Submission(text, (), EditorDraft(text)), when_busy)

    async def switch(self, session_id: str) -> None:
        """Leave the current session for another one."""
        self._submitter.leaves()
        self._change(ViewState(shows_thoughts=self.state.shows_thoughts))
        self._follower.switch(session_id)

    def ask_again(self) -> None:
        """Show postponed approvals again."""
        self._questions.again()

    def show_thoughts(self, *, shows: bool) -> None:
        """Print the model's thinking from now on, or hide it."""
        self._change(replace(self.state, shows_thoughts=shows))

    def leave(self) -> None:
        """End this client; the session continues in the daemon."""
        if self._application.is_running and not self._application.is_done:
            self._application.exit()
        # A task that has lent the terminal to another program would wait until the user closes that program.
        if self._terminal.is_lent:
            self._tasks.cancel()

    def suspended(self) -> AbstractAsyncContextManager[None]:
        """Lend the terminal to another program for the time of the block."""
        return self._terminal.lent()

    def write_raw(self, sequence: str) -> None:
        """Send the terminal a control sequence that does not move the cursor."""
        self._terminal.write(sequence)

    # --- key actions --------------------------------------------------------------------------------------------------

    def steer(self) -> None:
        """Send the editor's text into the current run, before its next step."""
        self.editor.submit("steer")

    def clear(self) -> None:
        """Clear the editor; undo restores the text."""
        self.editor.text = ""

    def repaint(self) -> None:
        """Repaint the whole live area, after other programs have written over it."""
        self._application.repaint()

    async def stop(self) -> None:
        """Suspend this process until the shell continues it (ctrl+z)."""
        await self._terminal.stop()

    def _focused(self, is_focused: bool) -> None:
        self._terminal.focused(is_focused)
        self._attention.focused(is_focused)
        if is_focused:
            self._change(replace(self.state, calls_you=False))

    def _caught_up(self) -> None:
        self._application.caught_up()

    def _is_own(self, key: str) -> None:
        self._change(replace(self.state, own=self.state.own | {key}))

    # --- drawing ------------------------------------------------------------------------------------------------------

    def _room(self) -> Room:
        size = self._application.output.get_size()
        return Room(size.columns, size.rows)

    def _live_rows(self, width: int, height: int) -> list[Row]:
        asked = self.dialog.question.tool_id if isinstance(self.dialog, Approval) else ""
        return activity(self.state, self.now(), width, height, asked=asked)

    def _status_row(self, width: int) -> Row:
        if hint := self._key_actions.hint:
            return [piece(TextRole.WARNING, cut(hint, width - 1))]
        return status(self.state, width, home=self.env.get("HOME", ""), vi_mode=self.editor.mode)
