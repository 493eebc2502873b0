"""The terminal client's command; `zot` runs it too.

Everything imported here delays the first paint, so it is little, and in this order: switch off echo, connect to the
daemon in a thread, import prompt_toolkit meanwhile.
"""

import gc
import os
import sys
from collections.abc import Sequence

from zotd.client.environment import without_flags


def main(argv: Sequence[str] | None = None) -> int:
    """Run the client with the flags of `zot` in `argv` (default: the command line) and return the exit code."""
    words, variables = without_flags(sys.argv[1:] if argv is None else argv)
    os.environ.update(variables)
    if _is_plain(words):
        from zottui.plain.chat import run  # noqa: PLC0415  (only one of the two clients is needed)

        return run(words)
    gc.disable()  # until everything is imported: collections take a tenth of the import time and free nothing
    from zottui.inline import run as run_inline  # noqa: PLC0415

    return run_inline(words)


def _is_plain(words: Sequence[str]) -> bool:
    """Return whether to use the plain client: it is asked for, or the terminal cannot do more."""
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
