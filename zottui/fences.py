"""Code in Markdown: what a person wants to copy out of a reply."""

from zottui.blocks import Code
from zottui.transcript import prose


def fences(markdown: str) -> list[str]:
    """The text of each fenced block, without its fence."""
    found: list[list[str]] = []
    for block in prose(markdown):
        if isinstance(block, Code):
            if block.opens:
                found.append([])
            found[-1] += block.lines
    return ["\n".join(lines) for lines in found]
