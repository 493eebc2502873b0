"""The terminal client's command; `zot` runs it too."""

import sys
from collections.abc import Sequence

from zottui.chat import run


def main(argv: Sequence[str] | None = None) -> int:
    """Chat, with the flags of `zot` in `argv` (default: the command line's); returns the exit code."""
    return run(sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
