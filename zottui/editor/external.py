"""Edits a prompt in the user's own editor, with the model's last reply below it."""

from zottui import external_editor
from zottui.ui_context import TerminalLender

MARK = "# ----- the last reply; this line and everything below it are not sent -----"
"""Separates the prompt from the reply. Other lines that begin with `#` are kept: prompts may contain headings."""


async def edited(ui: TerminalLender, text: str, reply: str) -> str:
    """Return `text` as edited by the user.

    Raises:
        OSError: the editor cannot be started.
    """
    return prompt_of(await external_editor.edited(ui, page(text, reply), suffix=".md"))


def page(text: str, reply: str) -> str:
    """Return the file for the editor: the prompt, and below `MARK` the reply."""
    if not reply.strip():
        return f"{text}\n"
    quoted = "\n".join(f"# {line}".rstrip() for line in reply.strip().split("\n"))
    return f"{text}\n\n{MARK}\n{quoted}\n"


def prompt_of(written: str) -> str:
    """Return the prompt in an edited file of `page`, without the reply."""
    words, _, _ = f"\n{written}".partition(f"\n{MARK}")
    return words[1:].removesuffix("\n")
