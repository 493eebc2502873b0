"""The calls of the session that wait for a decision: asked about one after the other."""

from zottui.dialogs.approval import Approval
from zottui.ui_context import UiContext


class ApprovalDialogs:
    """Keeps a dialog open for the oldest question that nobody has answered."""

    def __init__(self, desk: UiContext) -> None:
        """Nothing is open before the first `look`."""
        self._desk = desk
        self._open: Approval | None = None
        self._left: set[str] = set()
        """Approvals that were decided here, or put off."""

    def look(self) -> None:
        """Follow the state; called whenever it has changed. What is answered elsewhere closes by this."""
        pending = self._desk.state.approvals
        self._left &= {one.approval for one in pending}
        asked = self._open.question.approval if self._open is not None else ""
        if self._open is not None and all(one.approval != asked for one in pending):
            self._desk.close(self._open)
            self._open = None
        if self._open is None:
            self._ask()

    def again(self) -> None:
        """Ask about what was put off, too."""
        self._left.clear()
        self.look()

    def _ask(self) -> None:
        question = next((one for one in self._desk.state.approvals if one.approval not in self._left), None)
        if question is None:
            return
        dialog = Approval(self._desk, question, lambda: self._over(dialog))
        self._open = dialog
        self._desk.open(dialog)

    def _over(self, dialog: Approval) -> None:
        if self._open is not dialog:  # closed meanwhile: somebody else was quicker
            return
        self._left.add(dialog.question.approval)
        self._desk.close(dialog)
        self._open = None
        self._ask()
