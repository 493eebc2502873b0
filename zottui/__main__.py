"""The terminal client's command; `zot` runs it too.

What is imported here is all that stands between Enter and the first paint; so it is little, and in this order: the
keyboard is made quiet, the daemon is looked for in a thread, and meanwhile prompt_toolkit is imported.
"""

import gc
import os
import sys
from collections.abc import Sequence

from zotd.client.environment import without_flags


def main(argv: Sequence[str] | None = None) -> int:
    """Chat, with the flags of `zot` in `argv` (default: the command line's); returns the exit code."""
    words, variables = without_flags(sys.argv[1:] if argv is None else argv)
    os.environ.update(variables)
    if _is_plain(words):
        from zottui.plain.chat import run  # noqa: PLC0415  (one of the two is needed)

        return run(words)
    gc.disable()  # until all is imported: a tenth of that time is spent looking for garbage where there is none
    from zottui.inline import run as run_inline  # noqa: PLC0415

    return run_inline(words)


def _is_plain(words: Sequence[str]) -> bool:
    """Lines that only follow each other: asked for, or all that this terminal can."""
    flags = words[: words.index("--")] if "--" in words else words
    return (
        "--plain" in flags
        or os.environ.get("ACCESSIBLE", "") not in {"", "0"}
        or os.environ.get("TERM", "dumb") == "dumb"
        or not sys.stdin.isatty()
        or not sys.stdout.isatty()
    )


if __name__ == "__main__":
    sys.exit(main())
