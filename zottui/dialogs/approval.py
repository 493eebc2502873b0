"""The dialog for a tool call that needs approval.

    asking ─┬─ y, s, n ──────────────────────────────────> sent ─┬─> gone: decided, here or elsewhere
            ├─ a ──> confirming: what can be allowed from now   ├─> asking: it did not work, and why
            │        on, and the rule of it ── y ──> sent        │
            ├─ f ──> explaining: a reason is typed ─ enter > sent
            └─ e ──> the arguments in the editor ──> asking, about those, if the call has not started

A decision carries the digest of the arguments on the screen, so the daemon cannot apply it to other arguments.
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto

from zotd.client.asking import FILES, NETWORK, OVER, SAME, SCOPES, Lasting, lasting
from zotd.client.call_text import CallText
from zotd.client.errors import CallError, ClientError
from zotd.wire import api
from zotd.wire.events import ApprovalRequested
from zottui.blocks import CodeLines
from zottui.calls import CHANGING, subject
from zottui.dialogs.frame import Keys, framed, headed
from zottui.dialogs.keys import PASTED, TYPED, letter, named
from zottui.dialogs.line import Line
from zottui.diffs import ADDED, GAP, REMOVED, DiffLine, focused, unified
from zottui.external_editor import edited
from zottui.state import waiting
from zottui.theme import TextRole
from zottui.ui_context import Row, UiContext
from zottui.widgets.cells import POINTER, clean, folded, piece

QUIET_S = 0.5
"""Seconds without a key before letters count as decisions. The dialog may appear in the middle of a word: people pause
less than this between letters while typing, and take longer than this to read a question."""

_ROLES = {ADDED: TextRole.ADDED, REMOVED: TextRole.REMOVED, GAP: TextRole.MUTED}

# Prefixes of a diff's header lines, which are not lines of the file.
_HEADS = ("--- ", "+++ ", "@@ ")

DECISIONS = frozenset("ysanfe")


class Stage(Enum):
    """Which keys the dialog takes now; see the diagram above."""

    ASKING = auto()
    CONFIRMING = auto()
    EXPLAINING = auto()
    SENT = auto()


class Approval:
    """Asks the user to allow or deny one tool call. `zottui.dialogs.questions` opens and closes it."""

    has_editor = True

    def __init__(self, ui: UiContext, question: ApprovalRequested, over: Callable[[], None]) -> None:
        """Show `question` in the session that it names, or else in the session of `ui`.

        `over` is called once the call is decided, or the user postpones it with tab.
        """
        self.question = question
        self._ui = ui
        self._over = over
        self._stage = Stage.ASKING
        self._reason = Line()
        self._text = CallText(question.tool, question.args)
        # Arguments that the user has edited; None while they are the model's.
        self._args: dict[str, object] | None = None
        self._offers = lasting(question)
        # Index of the selected offer in `_wider`.
        self._chosen = 0
        # First line of the preview that is shown.
        self._offset = 0
        self._trouble = ""
        self._drawn: tuple[tuple[int, str], list[Row]] | None = None
        self._last_key = ui.now()  # the dialog may open in the middle of a word

    # --- drawing ----------------------------------------------------------------------------------------------------

    def rows(self, width: int, height: int) -> list[Row]:
        """Return the tool and its subject, the preview, the offers or the reason, and the key hints."""
        number = waiting(self._ui.state)
        details = [f"1 of {number}"] if number > 1 else []
        details += [f"until {self.question.expires[11:16]} UTC"] if self.question.expires else []
        about = f" {subject(self.question.tool, self.question.args)}" if self._changes else ""
        head = headed(f"● {self.question.tool}{about} needs you", " · ".join(details), TextRole.WARNING)
        return framed(head, lambda room: self._body(width, room), self._keys(), width=width, height=height)

    def _body(self, width: int, room: int) -> list[Row]:
        below = self._below(width)
        room = max(room - len(below), 0)
        lines = self._lines(width)
        self._offset = max(0, min(self._offset, len(lines) - room))
        shown = lines[self._offset : self._offset + room]
        left = len(lines) - self._offset - len(shown)
        if left and room > 1:  # the last visible row gives way to the note, hence `left + 1`
            shown[-1:] = [[piece(TextRole.MUTED, f"… {left + 1} more lines (ctrl+t prints all)")]]
        return [*shown, *below]

    def _below(self, width: int) -> list[Row]:
        """Return the rows between the preview and the key hints."""
        rows: list[Row] = []
        if self._stage is Stage.CONFIRMING:
            rows += self._confirmed(width)
        elif self._stage is Stage.EXPLAINING:
            rows.append(self._reason.row(f"why not? {POINTER} ", width))
        if self._trouble:
            rows += [[piece(TextRole.ERROR, line)] for line in folded(self._trouble, width)]
        return rows

    def _confirmed(self, width: int) -> list[Row]:
        """Return the wider offers, and for one that would be saved the text of the rule."""
        wider, chosen = self._wider, self._wider[self._chosen]
        rows: list[Row] = []
        for at, one in enumerate(wider):
            mark, role = (POINTER, TextRole.STRONG) if one is chosen else (" ", TextRole.TEXT)
            rows.append(
                [piece(role, clean(f"{mark} {at + 1} {one.text}")), piece(TextRole.MUTED, f"  {SCOPES[one.scope]}")]
            )
        if chosen.scope != "always":
            return [*rows, [piece(TextRole.WARNING, "allow this for the rest of the session?")]]
        rows.append([piece(TextRole.WARNING, "save this rule for all sessions?")])
        return [*rows, *([piece(TextRole.CODE, line)] for line in folded(chosen.rules.strip("\n"), width))]

    def _lines(self, width: int) -> list[Row]:
        """Return the rows of the preview, cached by width: it may be long, and each frame draws it."""
        if self._drawn is not None and self._drawn[0] == (width, self._preview):
            return self._drawn[1]
        is_diff, changes = self._language == "diff", self._changes
        numbers = max((len(str(change.number or "")) for change in changes), default=0)
        lines: list[Row] = [row for change in changes for row in _change(change, numbers, width)] or [
            [piece(_role(line) if is_diff else TextRole.TEXT, part)]
            for line in self._preview.split("\n")
            for part in folded(line, width)
        ]
        self._drawn = (width, self._preview), lines
        return lines

    @property
    def _changes(self) -> list[DiffLine]:
        """Return the changed lines if the preview is a complete diff and nothing else; a cut preview is shown as it is."""
        changes = unified(self._preview) if self._language == "diff" else []
        lines = [line for line in self._preview.split("\n") if not line.startswith(_HEADS)]
        return focused(changes) if len(lines) == sum(change.sign != GAP for change in changes) else []

    @property
    def _preview(self) -> str:
        if self._args is not None:
            return self._text.shown(self._args)
        return self.question.preview or self._text.shown(self.question.args)

    def _keys(self) -> Keys:
        match self._stage:
            case Stage.ASKING:
                wider = [("s", "this session")] if self._may("session") else []
                wider += [("a", "always" if len(self._wider) == 1 else "more…")] if self._wider else []
                edits = [("e", "edit")] if self._is_editable else []
                others = [("n", "no"), ("f", "no, because…"), *edits, ("ctrl+t", "all"), ("tab", "later")]
                return [("y", "approve" if self._text.is_plan else "once"), *wider, *others]
            case Stage.CONFIRMING:
                is_saved = self._wider[self._chosen].scope == "always"
                which = [(f"1-{len(self._wider)}", "which")] if len(self._wider) > 1 else []
                return [("y", "save it" if is_saved else "allow it"), *which, ("n", "no")]
            case Stage.EXPLAINING:
                return [("enter", "deny"), ("esc", "back")]
            case Stage.SENT:
                return [("", "sent…")]

    @property
    def _language(self) -> str:
        """Return the preview's language, for the colours of ctrl+t."""
        if self._args is not None or self._preview.startswith("{"):
            return "json"
        return "diff" if self.question.tool in CHANGING else "bash" if self.question.tool == "bash" else ""

    @property
    def _is_editable(self) -> bool:
        """Return whether the call can be made with other arguments: not when its command has started."""
        return self.question.tool not in {NETWORK, FILES}

    def _may(self, scope: str) -> bool:
        """Return whether the daemon offers to allow this exact call for `scope`."""
        return self._args is None and any((one.choice, one.scope) == (SAME, scope) for one in self._offers)

    @property
    def _wider(self) -> Sequence[Lasting]:
        """Return the offers behind the key `a`. Edited arguments have none: the daemon's offers are about the original."""
        return [one for one in self._offers if self._args is None and (one.choice, one.scope) != (SAME, "session")]

    # --- keys -------------------------------------------------------------------------------------------------------

    def key(self, name: str, text: str) -> bool:
        """Take a key. While the user is still typing, letters go to the editor; see `QUIET_S`."""
        if named(name) == "c-c":
            return False
        now, before = self._ui.now(), self._last_key
        if self._stage is Stage.ASKING and name in {TYPED, PASTED} and now - before < QUIET_S:
            self._last_key = now
            # A decision letter on an empty line was most likely meant for the previous question. Drop it: as a decision it
            # would approve an unread call, and as text it would begin a prompt.
            return not self._ui.text and letter(name, text) in DECISIONS
        match self._stage:
            case Stage.ASKING:
                return self._asking(name, text)
            case Stage.CONFIRMING:
                self._confirming(letter(name, text))
            case Stage.EXPLAINING:
                self._explaining(name, text)
            case Stage.SENT:
                pass
        return True

    def _asking(self, name: str, text: str) -> bool:
        match letter(name, text):
            case "y":
                self._send("allow")
            case "n":
                self._send("deny")
            case "s" if self._may("session"):
                self._send("allow", "session")
            case "a" if self._wider:
                self._stage, self._chosen = Stage.CONFIRMING, 0
            case "f":
                self._stage = Stage.EXPLAINING
            case "e" if self._is_editable:
                self._ui.spawn(self._edit())
            case "tab":
                self._over()
            case key:
                return self._looking(key)
        return True

    def _looking(self, key: str) -> bool:
        """Scroll or print the preview. Also swallow enter and letters: the user looks at the dialog, not at the editor."""
        steps = {"up": -1, "down": 1, "pageup": -8, "pagedown": 8}
        if key == "c-t":
            self._ui.print(CodeLines(self._language, tuple(self._preview.split("\n")), opens=True, closes=True))
        elif key in steps:
            self._offset += steps[key]
        return key in {*steps, "c-t", "enter"} or len(key) == 1

    def _confirming(self, key: str) -> None:
        last = len(self._wider) - 1
        if key in {"up", "down"}:
            self._chosen = max(0, min(self._chosen + (1 if key == "down" else -1), last))
        elif key.isdecimal():
            self._chosen = min(max(int(key) - 1, 0), last)
        elif key == "y":
            chosen = self._wider[self._chosen]
            self._send("allow", chosen.scope, choice=chosen.choice)
        else:
            self._stage = Stage.ASKING

    def _explaining(self, name: str, text: str) -> None:
        match named(name):
            case "enter":
                self._send("deny", reason=self._reason.text.strip() or None)
            case "escape":
                self._stage = Stage.ASKING
            case _:
                self._reason.key(name, text)

    # --- decisions --------------------------------------------------------------------------------------------------

    def _send(
        self, decision: str, scope: str = "once", reason: str | None = None, *, choice: str | None = None
    ) -> None:
        self._stage, self._trouble = Stage.SENT, ""
        self._ui.spawn(self._decide(decision, scope, reason, choice))

    async def _decide(self, decision: str, scope: str, reason: str | None, choice: str | None) -> None:
        question, session = self.question, self._ui.state.session
        args = self._args if decision == "allow" else None  # a denied call needs no edited arguments
        params = api.Approve(
            session=question.session or (session.id if session else ""),
            approval=question.approval,
            args_digest=question.args_digest,
            decision=decision,
            scope=scope,
            reason=reason,
            args=args,
            choice=choice,
        )
        try:
            await self._ui.ask(params, api.Nothing)
        except ClientError as error:
            if isinstance(error, CallError) and error.code in OVER:
                if error.code != "already_resolved":  # the event `approval_resolved` prints who decided
                    self._ui.say(str(error), "warn")
            else:
                self._stage, self._trouble = Stage.ASKING, str(error)
                self._ui.redraw()
                return
        self._over()

    async def _edit(self) -> None:
        """Open the arguments in the user's editor: a plan as lines, others as JSON. What is no JSON object is rejected."""
        args = self._args if self._args is not None else self.question.args
        after = await edited(self._ui, self._text.written(args), suffix=self._text.suffix)
        try:
            args = self._text.read(after)
        except ValueError as error:
            self._trouble = str(error)
        else:
            self._trouble = ""
            self._args = None if args == self.question.args else args
        self._offset = 0
        # Keys that were typed for the external editor may still arrive here; do not take them for decisions.
        self._last_key = self._ui.now()
        self._ui.redraw()


def _role(line: str) -> TextRole:
    return TextRole.MUTED if line.startswith(_HEADS) else _ROLES.get(line[:1], TextRole.TEXT)


def _change(change: DiffLine, numbers: int, width: int) -> list[Row]:
    """Return a diff line, with its number in `numbers` columns, folded to `width`."""
    role, indent = _ROLES.get(change.sign, TextRole.TEXT), " " * (numbers + 3)
    first, *others = folded(change.text, max(width - len(indent), 1))
    number = piece(TextRole.MUTED, f"{change.number or '':>{numbers}} ")
    return [[number, piece(role, f"{change.sign} {first}")], *([piece(role, indent + part)] for part in others)]
