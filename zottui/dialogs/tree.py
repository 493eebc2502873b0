"""The branches of a session (`/tree`): rewind to the end of a branch, fork from there, or switch to a fork."""

from collections.abc import Iterator, Sequence

from zotd.wire import api, reports
from zotd.wire.reports import Branch
from zottui.dialogs import choose
from zottui.dialogs.listing import Entry
from zottui.theme import TextRole
from zottui.ui_context import UiContext

WAYS = (
    Entry("rewind", "rewind to here", ("later messages stay on their own branch; files are not changed",)),
    Entry("fork", "fork a new session from here", ("this session is not changed",)),
)
"""What the user can do with the selected branch. Neither destroys anything: a rewind keeps the old branch."""


async def browse(ui: UiContext) -> None:
    """Show the branches of the session and do what the user chooses. Raises `ClientError`."""
    session = ui.state.session
    if session is None:
        return
    tree = await ui.ask(api.OfSession(session.id), reports.Tree, command="session.tree")
    chosen = await choose.ask(ui, "branches", entries(tree), selected=_key(tree.branches[-1]) if tree.branches else "")
    if chosen is None:
        return
    branch = next((one for one in tree.branches if _key(one) == chosen), None)
    if branch is None:
        await ui.switch(chosen)
        return
    page = await ui.ask(api.History(session=session.id, at=branch.last, limit=1), api.HistoryPage)
    await _go(ui, session.id, (page.messages[-1].seq if page.messages else None) or branch.last)


async def _go(ui: UiContext, session: str, seq: int) -> None:
    """Rewind to the message `seq` or fork from it, as the user chooses."""
    match await choose.ask(ui, "selected branch", WAYS):
        case "rewind":
            await ui.ask(api.Rewind(session=session, seq=seq), api.FilesRestored)
        case "fork":
            created = await ui.ask(api.Fork(session=session, seq=seq), api.Created)
            await ui.switch(created.session.id)
        case _:
            pass


def entries(tree: reports.Tree) -> list[Entry]:
    """Return the branches, indented below their parents, with their forks. The session's origin comes first."""
    shown = [_relative(tree.origin, "from", 0)] if tree.origin is not None else []
    return shown + list(_below(tree, None, 0))


def _below(tree: reports.Tree, parent: Branch | None, depth: int) -> Iterator[Entry]:
    for branch in tree.branches:
        if _parent(tree.branches, branch) is not parent:
            continue
        mark = "● here" if branch is tree.branches[-1] else ""
        notes = (f"{branch.messages} messages", (branch.time or "")[:16].replace("T", " "))
        yield Entry(_key(branch), branch.text or "(empty)", notes, mark=mark, role=TextRole.ACCENT, depth=depth)
        forks = (fork for fork in tree.forks if branch.first <= fork.at <= branch.last)
        yield from (_relative(fork, "fork", depth + 1) for fork in forks)
        yield from _below(tree, branch, depth + 1)


def _parent(branches: Sequence[Branch], branch: Branch) -> Branch | None:
    """Return the branch that `branch` starts from; None for the first one."""
    at = branch.at
    if at is None:
        return None
    return next((one for one in branches if one.first <= at <= one.last), None)


def _relative(fork: reports.Fork, word: str, depth: int) -> Entry:
    return Entry(
        fork.session, fork.name or fork.session, (f"at {fork.at}",), mark=word, role=TextRole.LINK, depth=depth
    )


def _key(branch: Branch) -> str:
    return f"branch {branch.first}"
