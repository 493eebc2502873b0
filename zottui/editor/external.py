"""A prompt in the user's own editor, with what the model said last below it."""

from zottui import external_editor
from zottui.ui_context import UiContext

MARK = "# ----- the last reply; this line and everything below it are not sent -----"
"""Only what is below it is dropped: prompts may have lines of their own that begin with `#`."""


async def edited(desk: UiContext, text: str, reply: str) -> str:
    """`text` as the user leaves it in the editor.

    Raises:
        OSError: there is no such editor.
    """
    return prompt_of(await external_editor.edited(desk, page(text, reply), suffix=".md"))


def page(text: str, reply: str) -> str:
    """What the editor shows."""
    if not reply.strip():
        return f"{text}\n"
    quoted = "\n".join(f"# {line}".rstrip() for line in reply.strip().split("\n"))
    return f"{text}\n\n{MARK}\n{quoted}\n"


def prompt_of(written: str) -> str:
    """What was made of the text of a page: what `page` has put behind it is gone."""
    words, _, _ = f"\n{written}".partition(f"\n{MARK}")
    return words[1:].removesuffix("\n")
