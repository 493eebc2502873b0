"""Opens the approval dialogs of the session, one after the other."""

from zottui.dialogs.approval import Approval
from zottui.ui_context import UiContext


class ApprovalDialogs:
    """Keeps a dialog open for the oldest pending approval that the user has not postponed."""

    def __init__(self, ui: UiContext) -> None:
        """Open nothing before the first `look`."""
        self._ui = ui
        self._open: Approval | None = None
        # Approvals that this client has decided or postponed. The state may still contain them.
        self._left: set[str] = set()

    def look(self) -> None:
        """Open or close the dialog to match the state; call it after each change. Decisions of other clients close it."""
        pending = self._ui.state.approvals
        self._left &= {one.approval for one in pending}
        asked = self._open.question.approval if self._open is not None else ""
        if self._open is not None and all(one.approval != asked for one in pending):
            self._ui.close(self._open)
            self._open = None
        if self._open is None:
            self._ask()

    def again(self) -> None:
        """Ask about postponed approvals again."""
        self._left.clear()
        self.look()

    def _ask(self) -> None:
        question = next((one for one in self._ui.state.approvals if one.approval not in self._left), None)
        if question is None:
            return
        dialog = Approval(self._ui, question, lambda: self._over(dialog))
        self._open = dialog
        self._ui.open(dialog)

    def _over(self, dialog: Approval) -> None:
        if self._open is not dialog:  # another client decided first, and `look` has closed it
            return
        self._left.add(dialog.question.approval)
        self._ui.close(dialog)
        self._open = None
        self._ask()
