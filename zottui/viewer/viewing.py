"""The controller of the viewer: key actions, background loading and the last line. `zottui.viewer.screen` draws it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial

from zotd.client.errors import ClientError
from zottui.blocks import Block, CodeLines, Rule, ToolRan
from zottui.dialogs.keys import TYPED, named
from zottui.dialogs.line import Line
from zottui.terminal.sequences import TooLongError, clipboard
from zottui.theme import TextRole
from zottui.ui_context import Row, UiContext
from zottui.viewer import changes
from zottui.viewer.finding import Query
from zottui.viewer.folding import marked
from zottui.viewer.keys import BY_KEY, HINTS
from zottui.viewer.searching import TextSearch
from zottui.viewer.visit import Visit
from zottui.viewer.whole import words_of
from zottui.widgets.cells import POINTER, cells, clean, cut, fit, piece, row_cells, style

GUTTER = 2
"""Columns left of the text, for the cursor."""

WHEEL_ROWS = 3
"""Rows to scroll for one wheel event, as in most programs."""

NAME_CELLS = 16
"""Columns of a session's name that take precedence over key hints."""

NEWS_S = 0.5
"""Seconds between two checks for new messages. There is no callback for it, and comparing one number is cheap."""


class Viewer:
    """Lets the user read one conversation until `leave` is called."""

    def __init__(self, ui: UiContext, visit: Visit, *, leave: Callable[[], None], redraw: Callable[[], None]) -> None:
        """`leave` ends the application that shows it, `redraw` schedules a frame. Keys work only within `run`."""
        self.wants_editor = False
        """Whether the viewer was left for the external editor, and should reopen afterwards."""
        self.printed: list[Block] = []
        """What is printed into the scrollback when the viewer closes."""
        self._ui = ui
        self._visit = visit
        self._reader = visit.reader
        self._leave = leave
        self._redraw = redraw
        self._note = visit.note
        # The search that is being typed; None if none is.
        self._line: Line | None = None
        self._search: TextSearch | None = None
        # The direction of the last match, in which `n` continues.
        self._goes_down = True
        self._tasks: asyncio.TaskGroup | None = None
        # The task that the user waits for; escape cancels it.
        self._work: asyncio.Task[None] | None = None
        self._filling: asyncio.Task[None] | None = None
        self._actions = self._made_actions()

    async def run(self, showing: Coroutine[object, object, object]) -> None:
        """Load, count prompts and follow new messages in the background until `showing` ends."""
        async with asyncio.TaskGroup() as self._tasks:
            beside = [self._tasks.create_task(self._count()), self._tasks.create_task(self._follow())]
            self._fill()
            try:
                await showing
            finally:
                self._end(beside)

    def _end(self, beside: list["asyncio.Task[None]"]) -> None:
        # The task group waits for all of its tasks, so cancel those that would otherwise run on.
        for task in [*beside, self._work, self._filling]:
            if task is not None:
                task.cancel()

    # --- drawing ------------------------------------------------------------------------------------------------------

    def rows(self, width: int, height: int) -> tuple[list[Row], int]:
        """Return the visible rows and the index of the cursor's row."""
        self._reader.resize(width - GUTTER, height)
        rows: list[Row] = []
        cursor = 0
        for shown in self._reader.screen():
            if shown.is_cursor:
                cursor = len(rows)
            mark = POINTER if shown.is_cursor else "▌" if shown.is_selected else " "
            spans = [(start - shown.row.offset, end - shown.row.offset) for start, end in shown.hits]
            text = marked(shown.row.pieces, spans, style(TextRole.SELECTED)) if spans else shown.row.pieces
            rows.append([piece(TextRole.ACCENT, f"{mark} "), *text])
        return rows, cursor

    def last_line(self, width: int) -> Row:
        """Return the typed search, or the position with a message or key hints."""
        if self._line is not None:
            return self._line.row("/", width)
        numbers = self._visit.navigator.numbers
        number, count = (numbers.of(self._reader.seq), len(numbers)) if numbers.is_complete else ("?", "?")
        row = [piece(TextRole.STATUS, f"turn {number}/{count}  {self._visit.navigator.percent}%")]
        if self._ui.state.approvals:
            row.append(piece(TextRole.WARNING, "  needs you: q to leave"))
        name = clean(self._visit.name)
        said = self._said()
        if said:
            row.append(piece(TextRole.TEXT, f"  {clean(said)}"))
        else:
            room = width - row_cells(row) - min(cells(name), NAME_CELLS) - len("  ")
            row += [piece(TextRole.STATUS, f"  {hint}") for hint in _fitting(HINTS, room)]
        # A long name gets only the remaining columns: the status bar shows it too, messages and hints appear only here.
        name = cut(name, max(width - row_cells(row) - len("  "), 0))
        return fit([piece(TextRole.STATUS, f"{name}  " if name else ""), *row], width)

    def _said(self) -> str:
        if self._search is not None and self._work is not None:
            return f"searching: {self._search.looked_at:,} messages; esc stops"
        return "loading" if self._work is not None else self._note

    @property
    def is_typing(self) -> bool:
        """Whether a search is being typed, so that it gets all keys."""
        return self._line is not None

    # --- keys ---------------------------------------------------------------------------------------------------------

    def key(self, name: str, text: str = "") -> None:
        """Handle a key by its prompt_toolkit name, or `<any>` with the character."""
        if self._line is not None:
            self._typed(self._line, name, text)
        else:
            self._note = ""
            action = self._actions.get(BY_KEY.get(text if name == TYPED else named(name), ""))
            if action is not None:
                action()
        self._moved()

    def wheel(self, *, down: bool) -> None:
        """Handle a wheel event of the mouse."""
        self._reader.scroll.wheel(WHEEL_ROWS if down else -WHEEL_ROWS)
        self._moved()

    def click(self, row: int) -> None:
        """Put the cursor on a row of the screen."""
        shown = self._reader.scroll.shown()
        if row < len(shown) and (at := self._reader.scroll.at()) is not None:
            self._reader.scroll.move(row - shown.index(at))
        self._moved()

    def _made_actions(self) -> dict[str, Callable[[], object]]:
        scroll, navigator = self._reader.scroll, self._visit.navigator
        return {
            "down": lambda: scroll.move(1),
            "up": lambda: scroll.move(-1),
            "page-down": lambda: scroll.page(scroll.height - 1),
            "page-up": lambda: scroll.page(1 - scroll.height),
            "half-down": lambda: scroll.page(scroll.height // 2),
            "half-up": lambda: scroll.page(-(scroll.height // 2)),
            "oldest": lambda: self._do(navigator.to_oldest),
            "newest": lambda: self._do(navigator.to_newest),
            "next-prompt": lambda: self._to_prompt(down=True),
            "previous-prompt": lambda: self._to_prompt(down=False),
            "toggle": self._toggle,
            "toggle-all": self._reader.layout.toggle_all,
            "search": self._ask,
            "next-hit": lambda: self._again(is_back=False),
            "previous-hit": lambda: self._again(is_back=True),
            "copy": self._copy,
            "print": self._print,
            "changes": lambda: self._do(self._changes),
            "edit": self._edit,
            "leave": self._leave,
            "stop": self._stop,
        }

    def _moved(self) -> None:
        self._fill()
        self._redraw()

    def _toggle(self) -> None:
        if not self._reader.toggle():
            self._say("enter expands a tool's output: move the cursor to a tool")

    def _say(self, words: str) -> None:
        self._note = words

    def _stop(self) -> None:
        """Cancel what the user waits for; if nothing is under way, leave."""
        if self._work is None:
            self._leave()
        else:
            self._work.cancel()

    def _edit(self) -> None:
        self.wants_editor = True
        self._leave()

    def _copy(self) -> None:
        block = self._reader.block
        if block is None:
            return
        words = words_of(block)
        try:
            self._ui.write_raw(clipboard(words, self._ui.env))
        except TooLongError as error:
            self._say(str(error))
        else:
            self._say(f"copied {len(words):,} characters")

    def _print(self) -> None:
        block = self._reader.block
        if isinstance(block, ToolRan):
            self.printed += [Rule(f"output of {block.name}"), _code(words_of(block))]
            self._say("the output is printed when you leave")
        else:
            self._say("[ prints a tool's output: move the cursor to a tool")

    async def _changes(self) -> None:
        navigator = self._visit.navigator
        if not navigator.numbers.is_complete:
            self._say("the turns are still being counted; press f again in a moment")
            return
        found = await changes.of_turn(self._ui, navigator.pages.session, navigator.numbers, self._reader.seq)
        if found is None:
            self._say("f shows what a turn has changed: move the cursor to a turn")
        else:
            self.printed += changes.blocks(found)
            self._say(changes.summary(found))

    # --- searching ----------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        self._line = Line()

    def _typed(self, line: Line, name: str, text: str) -> None:
        match named(name):
            case "escape" | "c-c":
                self._line = None
            case "backspace" if not line.text:
                self._line = None
            case "enter":
                self._line = None
                self._begin(line.text)
            case _:
                line.key(name, text)

    def _begin(self, words: str) -> None:
        """Search below the cursor, then above it. Without words, repeat the last search."""
        if words:
            query = Query(words)
            self._reader.highlight(query)
            self._search = TextSearch(self._reader, self._visit.navigator.pages, query)
        if self._search is not None:
            self._look(self._search, (True, False), includes_cursor=bool(words))

    def _again(self, *, is_back: bool) -> None:
        if self._search is None:
            self._say("/ searches")
        else:
            self._look(self._search, (self._goes_down != is_back,))

    def _look(self, search: TextSearch, ways: tuple[bool, ...], *, includes_cursor: bool = False) -> None:
        """Go to the nearest match in the first of the directions `ways` (True: down) that has one.

        Synchronous if the match is loaded, else in the background.
        """
        for tried, down in enumerate(ways):
            if search.near(down=down, includes_cursor=includes_cursor):
                self._has_found(ways, down=down)
                return
            if search.has_more(down=down):
                self._do(partial(self._find, search, ways, tried))
                return
        self._has_found_nothing(search, ways)

    async def _find(self, search: TextSearch, ways: tuple[bool, ...], tried: int) -> None:
        for down in ways[tried:]:
            if await search.go(down=down):
                self._has_found(ways, down=down)
                return
        self._has_found_nothing(search, ways)

    def _has_found(self, ways: tuple[bool, ...], *, down: bool) -> None:
        if len(ways) > 1:  # a new search: `n` continues in the direction that had a match
            self._goes_down = down

    def _has_found_nothing(self, search: TextSearch, ways: tuple[bool, ...]) -> None:
        where = "" if len(ways) > 1 else " below" if ways[0] else " above"
        self._say(f"no match{where}: {search.query.words}")

    # --- background work ----------------------------------------------------------------------------------------------

    def _do(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Start work that the user waits for; cancels the previous one."""
        assert self._tasks is not None, "keys come while it runs"
        if self._work is not None:
            self._work.cancel()
        self._work = self._tasks.create_task(self._guarded(work))
        self._work.add_done_callback(self._done)

    def _done(self, work: "asyncio.Task[None]") -> None:
        if self._work is work:  # else newer work has replaced it
            self._work = None
        self._moved()

    async def _guarded(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        try:
            await work()
        except ClientError as error:
            self._say(str(error))
        self._redraw()

    def _to_prompt(self, *, down: bool) -> None:
        """Go to the nearest prompt, synchronously if it is loaded: repeats of a held key must start from there."""
        if not self._visit.navigator.to_near_prompt(down=down):
            self._do(partial(self._to_far_prompt, down=down))

    async def _to_far_prompt(self, *, down: bool) -> None:
        if not await self._visit.navigator.to_prompt(down=down):
            self._say(f"no prompt {'below' if down else 'above'}")

    def _fill(self) -> None:
        """Start loading what is about to scroll into view, unless that is under way."""
        wants = self._reader.wants_older or self._reader.wants_newer
        if wants and self._filling is None and self._tasks is not None:
            # Separate from `_work`: scrolling must not cancel a search, nor show "loading" for every page.
            self._filling = self._tasks.create_task(self._guarded(self._load))
            self._filling.add_done_callback(self._filled)

    async def _load(self) -> None:
        while self._reader.wants_older or self._reader.wants_newer:
            await self._visit.navigator.load_more()

    def _filled(self, _: "asyncio.Task[None]") -> None:
        self._filling = None

    async def _count(self) -> None:
        """Count the prompts, then go to the requested one."""
        navigator, turn = self._visit.navigator, self._visit.turn
        if not navigator.numbers.is_complete:
            await self._guarded(partial(navigator.count, self._ui))
        if turn is not None and navigator.numbers.is_complete and not await navigator.to_turn(turn):
            self._say(f"no prompt {turn}: there are {len(navigator.numbers)}")
        self._moved()

    async def _follow(self) -> None:
        """Load messages that are added while the viewer is open."""
        navigator, seen = self._visit.navigator, self._ui.state.last_seq
        session = self._ui.state.session
        while session is not None and session.id == navigator.pages.session and navigator.pages.at is None:
            await asyncio.sleep(NEWS_S)
            if self._ui.state.last_seq != seen:
                seen = self._ui.state.last_seq
                await self._guarded(navigator.load_news)


def _fitting(hints: Sequence[str], width: int) -> list[str]:
    """Return as many of the hints as fit, each with two spaces before it."""
    fitting: list[str] = []
    for hint in hints:
        width -= cells(hint) + len("  ")
        if width < 0:
            break
        fitting.append(hint)
    return fitting


def _code(words: str) -> CodeLines:
    return CodeLines("", tuple(words.split("\n")), opens=True, closes=True)
