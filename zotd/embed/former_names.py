"""Names that programs imported before the package `zot` was there; `docs/python.md` says until when they work."""

import warnings
from importlib import import_module

GOES_WITH = "0.3"
"""The version without these names."""


def former(module: str, name: str, *, now_in: str, instead: str) -> object:
    """Return what was called `name` in `module`, for its `__getattr__`; warns its importer.

    Raises:
        AttributeError: there was no such name.
    """
    found = vars(import_module(now_in)).get(name)
    if found is None or name.startswith("_"):
        raise AttributeError(f'module "{module}" has no attribute "{name}"')
    warnings.warn(
        f"{module}.{name} goes with zot {GOES_WITH}; use {instead} (docs/python.md)", DeprecationWarning, stacklevel=3
    )
    return found
