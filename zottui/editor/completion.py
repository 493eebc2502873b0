"""The completion popup for commands, their arguments and files.

/mo              commands, at the beginning of the text
/model op        arguments of a command that has completion for them
see @src/ma      files, at the beginning of a word; also @"with spaces", and what extensions offer to mention
"""

import re
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from prompt_toolkit.buffer import Buffer

from zotd.client.errors import ClientError
from zotd.wire.api import Complete, Completions
from zottui.asking import Newest
from zottui.choice import ListChoice
from zottui.dialogs.keys import named
from zottui.editor.buffer import PromptBuffer
from zottui.editor.ranking import best, is_subsequence, ranked
from zottui.theme import TextRole
from zottui.ui_context import CommandSender, DialogHost, Row, StateHolder, TaskSpawner
from zottui.widgets.cells import cells, clean, fit, padded, piece

ROWS = 8
"""Most rows of the popup."""

NAME_CELLS = 32
"""Columns for names before their descriptions; a longer name pushes its description to the right."""

Source = Callable[[str], Coroutine[object, object, Sequence[ListChoice]]]
"""Returns the choices for a partial text; called again after each key. A `ClientError` counts as no choices."""

_FILE = re.compile(r'(?:^|(?<=\s))@(?:"(?P<quoted>[^"\n]*)|(?P<plain>[^\s"]*))\Z')
_COMMAND = re.compile(r"/[^\s/]*\Z")


class Kind(Enum):
    """What a token names, which decides where its choices come from."""

    COMMAND = "command"
    ARGUMENT = "argument"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class CompletionToken:
    """The text before the cursor that can be completed."""

    kind: Kind
    start: int
    """Index of its first character; it ends at the cursor."""
    query: str
    """The typed part of the name."""
    command: str = ""
    """For an argument, the name of its command."""


def token_at(text: str, cursor: int, commands_with_arguments: Collection[str]) -> CompletionToken | None:
    """Return the completable text at `cursor`, if any."""
    before = text[:cursor]
    if _COMMAND.match(before):
        return CompletionToken(Kind.COMMAND, 0, before[1:])
    name, space, argument = before.partition(" ")
    if space and name[:1] == "/" and name[1:] in commands_with_arguments and "\n" not in before:
        return CompletionToken(Kind.ARGUMENT, len(name) + 1, argument, name[1:])
    found = _FILE.search(before)
    if found is None:
        return None
    quoted = found["quoted"]
    return CompletionToken(Kind.FILE, found.start(), found["plain"] if quoted is None else quoted)


class CompletionContext(CommandSender, DialogHost, StateHolder, TaskSpawner, Protocol):
    """What `Popup` needs of the application."""


class Popup:
    """The popup; it is open as a `Dialog` while it has choices."""

    has_editor = True

    def __init__(
        self,
        ui: CompletionContext,
        buffer: PromptBuffer,
        *,
        commands: Callable[[], Sequence[ListChoice]],
        arguments: Mapping[str, Source],
        run: Callable[[], None],
    ) -> None:
        """Follow the text of `buffer`. `run` submits it. `arguments` are sources by command name, without the slash."""
        self._ui = ui
        self._buffer = buffer
        self._commands = commands
        self._arguments = arguments
        self._run = run
        self._token: CompletionToken | None = None
        # The source's last answer for this token.
        self._choices: Sequence[ListChoice] = ()
        self._shown: list[ListChoice] = []
        # Name that the user has moved to; None: the best match is highlighted.
        self._chosen: str | None = None
        # Kind and start of the token whose popup the user has closed with escape.
        self._dismissed: tuple[Kind, int] | None = None
        self._asking = Newest(ui.spawn, self._ask, self._take)  # one request at a time, however fast the user types
        buffer.on_text_changed += self._follow
        buffer.on_cursor_position_changed += self._follow

    @property
    def is_open(self) -> bool:
        """Whether there are choices."""
        return bool(self._shown)

    def dismiss(self) -> None:
        """Close the popup until the user begins another token."""
        self._dismissed = (self._token.kind, self._token.start) if self._token else None
        self._show([])

    def commands_changed(self) -> None:
        """Show the commands of now, if the user is typing the name of one. A dialog that has the keys keeps them."""
        has_keys = self.is_open or self._ui.dialog is None
        if has_keys and self._token is not None and self._token.kind is Kind.COMMAND:
            self._look(self._token)

    def rows(self, width: int, height: int) -> list[Row]:
        """Return the choices around the highlighted one."""
        most = min(height, ROWS)
        at = self._highlighted()
        top = max(0, min((at or 0) - most // 2, len(self._shown) - most))  # keeps the highlighted row in the middle
        window = self._shown[top : top + most]
        names = max((cells(self._name(choice)) for choice in window), default=0)
        return [
            fit(self._row(choice, min(names, NAME_CELLS, width), is_highlighted=top + n == at), width)
            for n, choice in enumerate(window)
        ]

    def key(self, name: str, text: str) -> bool:  # noqa: ARG002  (of a Dialog)
        """Move, complete, accept or dismiss; False for other keys, which go to the editor."""
        if not self._shown:
            return False
        match named(name):
            case "up" | "c-p" | "backtab":
                self._move(-1)
            case "down" | "c-n":
                self._move(1)
            case "tab":
                self._complete()
            case "enter":
                return self._enter()
            case "escape":
                self.dismiss()
            case _:
                return False
        return True

    # --- drawing ---------------------------------------------------------------------------------------------------

    def _follow(self, _: Buffer) -> None:
        """Update the token and the choices after a change of the text or cursor."""
        token = token_at(self._buffer.text, self._buffer.cursor_position, self._arguments.keys())
        before, self._token = self._token, token
        if token is None:
            self._dismissed = None
            self._show([])
        elif token != before:
            # Another token, not only a longer query: old choices are about something else.
            if before is None or replace(before, query=token.query) != token:
                self._choices, self._chosen = (), None
            self._look(token)

    def _look(self, token: CompletionToken) -> None:
        if self._dismissed not in {None, (token.kind, token.start)}:
            self._dismissed = None
        if self._dismissed is not None:
            return
        if token.kind is Kind.COMMAND:
            self._choices = self._commands()
        else:
            self._asking.want(token.query)
        self._show(self._fitting(token))

    def _fitting(self, token: CompletionToken) -> list[ListChoice]:
        """Filter the last choices by the current query, until the source answers; files stay in the daemon's order."""
        if token.kind is not Kind.FILE:
            return ranked(self._choices, token.query)
        query = token.query.casefold()
        return [choice for choice in self._choices if is_subsequence(query, choice.name.casefold())]

    async def _ask(self, query: str) -> tuple[CompletionToken | None, Sequence[ListChoice]]:
        token = self._token
        try:
            if token is None or token.kind is Kind.COMMAND:
                return token, ()
            if token.kind is Kind.ARGUMENT:
                return token, await self._arguments[token.command](query)
            return token, await self._files(query)
        except ClientError:  # no connection, or an older daemon: an error at each key would only disturb
            return token, ()

    async def _files(self, query: str) -> list[ListChoice]:
        session = self._ui.state.session
        if session is None:
            return []
        found = await self._ui.ask(Complete(session=session.id, kind="file", text=query), Completions)
        details = {one.text: one for one in found.found}
        choices = ((item, details.get(item)) for item in found.items)
        return [ListChoice(item) if one is None else ListChoice(item, one.detail, one.source) for item, one in choices]

    def _take(self, _: str, answer: tuple[CompletionToken | None, Sequence[ListChoice]]) -> None:
        token, choices = answer
        # The user may have typed on or closed the popup while the answer was under way.
        if token is not None and token == self._token and self._dismissed is None:
            self._choices = choices
            self._show(list(choices) if token.kind is Kind.FILE else self._fitting(token))

    def _show(self, choices: list[ListChoice]) -> None:
        was_open, self._shown = self.is_open, choices
        if all(choice.name != self._chosen for choice in choices):
            self._chosen = None
        if self.is_open and not was_open:
            self._ui.open(self)
        elif was_open and not self.is_open:
            self._ui.close(self)
        self._ui.redraw()

    def _highlighted(self) -> int | None:
        """Return the index of the choice that Enter takes; None while nothing is typed of the name."""
        for index, choice in enumerate(self._shown):
            if choice.name == self._chosen:
                return index
        if not self._shown or self._token is None:
            return None
        if self._token.kind is Kind.FILE:
            return 0
        return best(self._shown, self._token.query) if self._token.query else None

    def _name(self, choice: ListChoice) -> str:
        return clean(f"/{choice.name}" if self._token and self._token.kind is Kind.COMMAND else choice.name)

    def _row(self, choice: ListChoice, names: int, *, is_highlighted: bool) -> Row:
        role = TextRole.SELECTED if is_highlighted else TextRole.TEXT
        if not choice.what and not choice.source:
            return [piece(role, self._name(choice))]
        row = [piece(role, padded(self._name(choice), max(names, cells(self._name(choice)))))]
        if choice.what:
            row.append(piece(TextRole.MUTED, f"  {clean(choice.what)}"))
        if choice.source:
            row.append(piece(TextRole.ACCENT, f"  [{clean(choice.source)}]"))
        return row

    # --- choosing --------------------------------------------------------------------------------------------------

    def _move(self, by: int) -> None:
        at = self._highlighted()
        if at is None:
            at = -1 if by > 0 else 0
        self._chosen = self._shown[(at + by) % len(self._shown)].name
        self._ui.redraw()

    def _enter(self) -> bool:
        token, at = self._token, self._highlighted()
        # Enter on a bare slash does nothing; on a command without its argument it submits the command.
        if token is None or at is None:
            return token is not None and token.kind is Kind.COMMAND
        choice = self._shown[at]
        if token.kind is Kind.FILE and self._is_written(token, choice):
            self.dismiss()  # else Enter would send or not, depending on whether the list came before it
            return False
        is_exact = choice.name.casefold() == token.query.casefold()
        runs = token.kind is Kind.ARGUMENT or (token.kind is Kind.COMMAND and (is_exact or not choice.needs_argument))
        self.dismiss()
        self._insert(token, written(token.kind, choice.name) + ("" if runs else " "))
        if runs:
            self._run()
        return True

    def _is_written(self, token: CompletionToken, choice: ListChoice) -> bool:
        """Whether the choice stands before the cursor already, as `_insert` would write it."""
        return self._buffer.text[token.start : self._buffer.cursor_position] == written(token.kind, choice.name)

    def _complete(self) -> None:
        """Insert the highlighted choice. After a directory the popup stays open for its files."""
        token, choice = self._token, self._shown[self._highlighted() or 0]
        if token is None:
            return
        words = written(token.kind, choice.name)
        if token.kind is Kind.FILE and choice.name.endswith("/"):
            self._insert(token, words.removesuffix('"'))
        else:
            self.dismiss()
            self._insert(token, f"{words} ")

    def _insert(self, token: CompletionToken, words: str) -> None:
        """Replace the token by `words`, without doubling a space that follows it."""
        text, cursor = self._buffer.text, self._buffer.cursor_position
        rest = text[cursor:].removeprefix(" ") if words.endswith(" ") else text[cursor:]
        self._buffer.replace(text[: token.start] + words + rest, token.start + len(words))


def written(kind: Kind, name: str) -> str:
    """Return a choice as it is written in the text."""
    match kind:
        case Kind.COMMAND:
            return f"/{name}"
        case Kind.ARGUMENT:
            return name
        case Kind.FILE:
            # Without quotes a space would end the mention.
            return f'@"{name}"' if " " in name else f"@{name}"
