"""Refuses to be imported in a sub-interpreter, where msgspec, on which zot stands, corrupts memory."""

import importlib
import sys

MODULE = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
"""The module of the standard library that knows the interpreters of this process."""


def _is_main() -> bool:
    try:
        interpreters = importlib.import_module(MODULE)
    except ImportError:  # this Python has no others
        return True
    return bool(interpreters.get_current() == interpreters.get_main())


if not _is_main():
    raise ImportError("zot does not run in a sub-interpreter; use it in the main one, or in a process of its own")
