"""Lists the module files of directories with their versions, and imports them."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..answers import message_of
from .guard import ModuleGuard, UntrustedError

IMPORT_PATIENCE_S = 5.0
"""How long one import may delay the others: enough for the slowest libraries (1 to 2 s), less than the 10 s that the host
waits for all registrations."""


class ContractError(Exception):
    """A file lacks the functions that its kind of module must define."""


class Version(NamedTuple):
    """One version of a file. Size and inode distinguish two versions saved within one tick of the clock."""

    path: Path
    modified_ns: int
    size: int
    inode: int


def versions(directories: Sequence[Path]) -> dict[str, Version]:
    """Return the current modules by name; the first directory with a name wins. `_helpers` are not modules."""
    found: dict[str, Version] = {}
    for directory in directories:
        for path in sorted(directory.glob("*.py")):
            if path.name.startswith("_") or path.stem in found:
                continue
            try:
                status = path.stat()
            except OSError:
                continue  # deleted in the meantime
            found[path.stem] = Version(path, status.st_mtime_ns, status.st_size, status.st_ino)
    return found


def import_file(path: Path, guard: ModuleGuard | None = None) -> types.ModuleType:
    """Import a file again. Its exceptions are passed on, and an earlier import then stays in place.

    Raises:
        UntrustedError: `guard` refuses the file.
    """
    # Not with importlib: its bytecode cache compares whole seconds and sizes, so it would run old code if a file is
    # saved twice within a second.
    code = path.read_bytes() if guard is None else guard.read(path)
    name = f"_zot_{path.parent.name}_{path.stem}"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    _forget_helpers(path.parent)
    earlier = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses and type hints look up their module
    try:
        exec(compile(code, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102  its purpose
    except BaseException:
        if earlier is None:
            del sys.modules[name]
        else:
            sys.modules[name] = earlier
        raise
    return module


def import_patiently(work: Callable[[], None]) -> bool:
    """Run `work`, which imports a file, in a thread; return False if it takes too long (it continues)."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(IMPORT_PATIENCE_S)
    return not thread.is_alive()


def complaint(path: Path, error: BaseException) -> str:
    """Describe the error of a file in one line, with the line number if there is one."""
    if isinstance(error, (ContractError, UntrustedError)):
        return str(error)
    if isinstance(error, SyntaxError):
        where = f" (line {error.lineno})" if error.lineno else ""
        return f"SyntaxError: {error.msg}{where}"
    lines = [line for filename, line in _frames(error) if filename == str(path)]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {message_of(error)}{where}"


def _frames(error: BaseException) -> Iterator[tuple[str, int]]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next


def _forget_helpers(directory: Path) -> None:
    """Make `import _helper` read the helper's file again, which may have changed together with the module."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name.startswith("_") and Path(file).parent == directory and not name.startswith("_zot_"):
            del sys.modules[name]
