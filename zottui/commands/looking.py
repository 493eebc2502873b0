"""Commands that only read: search, usage, clients, export, copy, lists."""

import asyncio
import os

from zotd.client import place
from zotd.client.atomic_write import write_atomically
from zotd.client.humanize import count, money
from zotd.wire import api, extensions, reports
from zotd.wire.events import ClientInfo
from zottui.commands.command import Command, UsageError, number, of
from zottui.dialogs import choose
from zottui.dialogs.listing import Entry
from zottui.editor.keys import KEYS as EDITOR_KEYS
from zottui.keys import KEYS
from zottui.terminal.sequences import TooLongError, clipboard
from zottui.transcript import fences
from zottui.ui_context import UiContext
from zottui.viewer import view
from zottui.widgets.cells import clean, cut

LABEL_COLUMNS = 24
"""Columns for the keys in `/keys`: the width of the longest label."""


NAME_CELLS = 20
"""Columns for a session's name beside a search result."""

BEFORE_HIT_CHARS = 8
"""Characters of a snippet that are shown before the match."""

FORMATS = {"": "markdown", ".md": "markdown", ".markdown": "markdown", ".txt": "markdown", ".jsonl": "jsonl"}
"""Export formats of the daemon by file name suffix."""


async def jump(ui: UiContext, args: str) -> None:
    """Open the viewer at a prompt; without a number, at the end."""
    await view(ui, turn=number(args, "the prompt to jump to"))


async def find(ui: UiContext, words: str) -> None:
    """Search the messages of all sessions and open the viewer at the chosen result."""
    if not words:
        raise UsageError("/find needs words to search for; quote them to find a phrase")
    page = await ui.ask(api.Search(query=words), reports.SearchPage)
    if not page.hits:
        ui.say(f"no message contains {words}" + ("" if page.complete else "; the newest messages are not indexed yet"))
        return
    entries = [
        Entry(
            f"{hit.session} {hit.seq}",
            _around(hit.snippet, words),
            (hit.time[:10], cut(clean(hit.name or hit.session), NAME_CELLS)),
            mark=hit.role,
        )
        for hit in page.hits
    ]
    chosen = await choose.ask(ui, f"results for {words}", entries)
    if chosen is not None:
        session, _, seq = chosen.partition(" ")
        await view(ui, session=session, seq=int(seq))


def _around(snippet: str, words: str) -> str:
    """Return the snippet from shortly before the first match on, so that a narrow list still shows the match."""
    places = [snippet.casefold().find(word.strip('"').casefold()) for word in words.split()]
    first = min((place for place in places if place >= 0), default=0)
    start = max(first - BEFORE_HIT_CHARS, 0)
    return f"…{snippet[start:].lstrip()}" if start else snippet


async def usage(ui: UiContext, _: str) -> None:
    """Print the tokens and cost of the session and of all sessions, and the budgets that apply."""
    taken = ui.state.usage
    ui.say(
        f"this session: {money(taken.cost_usd)}; {count(taken.input)} tokens in, {count(taken.output)} out,"
        f" {count(taken.cache_read)} read from the cache, {count(taken.cache_write)} written to it"
    )
    sums = await ui.ask(api.UsageReport(), reports.UsageSums)
    for row in sums.rows:
        ui.say(f"{row.key}, all sessions: {money(row.cost_usd)} for {row.attempts} requests")
    for budget in sums.budgets:
        if budget.limit_usd is not None and budget.session in {"", of(ui)}:
            ui.say(f"{budget.scope} budget: {money(budget.spent_usd)} of {money(budget.limit_usd)}")


async def who(ui: UiContext, _: str) -> None:
    """List the clients that are attached to this session."""
    here = await ui.ask(api.OfSession(of(ui)), api.PresenceList, command="presence")
    for client in here.clients:
        ui.say(_present(client, is_you=client.id == here.you))


def _present(client: ClientInfo, *, is_you: bool) -> str:
    if is_you:  # always "typing": the user has just typed /who
        doing = " (you) is here"
    else:
        doing = " is typing" if client.typing else " looks at it" if client.focused else " is attached"
    return f"{client.name or client.kind or client.id}{doing}, since {client.since[11:16]} UTC"


async def export(ui: UiContext, path: str) -> None:
    """Export the session to a file: as Markdown, or completely if the name ends with .jsonl.

    A relative path is relative to the session's directory, or to the client's own directory with a remote daemon.
    """
    session = of(ui)
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in FORMATS:
        raise UsageError(f"/export writes .md (Markdown) or .jsonl (everything), not {suffix}")
    form = FORMATS[suffix]
    pages: list[str] = []
    after: int | None = 0  # the daemon pages its answer: a frame holds at most 16 MiB
    while after is not None:
        page = await ui.ask(api.Export(session=session, format=form, after=after), api.Exported)
        pages.append(page.text)
        after = page.next
    folder = os.getcwd() if place.of(ui.env).is_remote else ui.cwd
    written = await asyncio.to_thread(_write, os.path.join(folder, path or f"{session}.md"), pages)
    ui.say(f"exported to {written}")


def _write(path: str, pages: list[str]) -> str:
    path = os.path.expanduser(path)
    with write_atomically(path) as file:
        file.writelines(pages)
    return path


async def copy(ui: UiContext, which: str) -> None:
    """Copy the last reply as Markdown, all of its code blocks, or the code block with a number."""
    reply = ui.last_reply
    if not reply:
        raise UsageError("no reply to copy yet")
    blocks = fences(reply)
    match which:
        case "" | "all":
            text = reply
        case "code" if blocks:
            text = "\n\n".join(blocks)
        case _ if which.isdecimal() and 1 <= int(which) <= len(blocks):
            text = blocks[int(which) - 1]
        case _:
            raise UsageError(
                f"/copy takes all, code or a number, not {which}; the last reply has {len(blocks)} code blocks"
            )
    try:
        ui.write_raw(clipboard(text, ui.env))
    except TooLongError as error:
        raise UsageError(f"{error}; use /export instead") from error
    ui.say(f"copied {len(text):,} characters")


async def skills(ui: UiContext, _: str) -> None:
    """List the skills that the model can load."""
    found = await ui.ask(api.Complete(session=of(ui), kind="command", text=""), api.Completions)
    known = [each for each in found.found if each.source == "skill"]
    for each in known:
        ui.say(f"{each.text}  {each.detail}")
    if not known:
        ui.say("no skills found")


async def ext(ui: UiContext, _: str) -> None:
    """List the extensions of this session with their states."""
    found = await ui.ask(extensions.Scope(session=of(ui)), extensions.ExtensionList, command="ext.list")
    for each in found.extensions:
        name = f"{each.name} {each.version}".rstrip()
        state = each.state if each.responding else "not responding"
        reason = f": {each.reason}" if each.reason else ""
        is_well = each.state == "ready" and each.responding and not reason
        ui.say(f"{name}  {state}{reason}", "info" if is_well else "warn")
    if not found.extensions:
        ui.say("no extensions; create one with: zotctl ext new")


async def keys(ui: UiContext, _: str) -> None:
    """List the keys of the editor and of the viewer."""
    from zottui.viewer.keys import KEYS as VIEWER_KEYS  # noqa: PLC0415  (the first paint waits for no viewer)

    here = [(key.label, key.what) for key in (*EDITOR_KEYS, *KEYS)]
    in_viewer = [(key.label, key.what) for key in VIEWER_KEYS]
    for title, rows in (("", here), ("in the viewer:\n", in_viewer)):
        ui.say(title + "\n".join(f"{label:{LABEL_COLUMNS}} {what}" for label, what in rows))


COMMANDS = (
    Command("jump", "open the viewer at a prompt", jump, "[N]"),
    Command("find", "search all sessions", find, "WORDS"),
    Command("usage", "show tokens, cost and budgets", usage),
    Command("who", "list the clients of this session", who),
    Command("export", "export the session to a .md or .jsonl file", export, "[FILE]"),
    Command("copy", "copy the last reply or its code", copy, "[all|code|N]"),
    Command("skills", "list the skills", skills),
    Command("ext", "list the extensions", ext),
    Command("keys", "list the keys", keys),
)
