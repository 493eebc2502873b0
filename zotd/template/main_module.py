"""Runs a Python program in a fork as `__main__`, in the state in which the interpreter would have begun it.

No `Path` here: its objects would have the fork copy 60 pages.
"""

import atexit
import gc
import importlib.machinery
import io
import locale
import os
import runpy
import signal
import site
import sys
import threading
import time
import types
import weakref
from collections.abc import Mapping
from typing import NoReturn

from zotd.template.fork_protocol import COERCED
from zotd.template.python_program import PythonProgram

C_LOCALES = frozenset({"", "C", "POSIX"})

FAILED = 1
UNWRITTEN = 120
"""Exit code of the interpreter if stdout could not be written at its end."""

LONG_S = 3600.0
"""An interval between two switches of threads that lasts longer than the end of a process."""


class OtherStateError(Exception):
    """The program would begin in another state than a fork can have; the message says in which."""


def adopt_environment(environment: Mapping[str, str], *, ignores_variables: bool) -> str:
    """Replace the environment; return how text streams treat bytes that are not UTF-8.

    Raises:
        OtherStateError: the locale is not one of UTF-8, or another user's packages would be used.
    """
    if site.ENABLE_USER_SITE and environment.get("HOME") != os.environ.get("HOME"):
        raise OtherStateError("HOME, below which packages are searched, has another value")
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    if not ignores_variables:
        sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    chosen = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "")
    if chosen in C_LOCALES:
        if not environment.get("LC_ALL"):
            os.environ["LC_CTYPE"] = COERCED
        return "surrogateescape"
    try:
        locale.setlocale(locale.LC_CTYPE, "")
    except locale.Error as error:
        raise OtherStateError(f"there is no locale {chosen}") from error
    if locale.nl_langinfo(locale.CODESET) != "UTF-8":
        raise OtherStateError(f"the locale {chosen} is not one of UTF-8")
    return "surrogateescape" if chosen == COERCED else "strict"


def open_streams(errors: str) -> None:
    """Open `sys.stdin`, `sys.stdout` and `sys.stderr` anew, on the descriptors 0 to 2."""
    is_unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = _stream(0, "r", errors, is_unbuffered=False)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "w", errors, is_unbuffered=is_unbuffered)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "w", "backslashreplace", is_unbuffered=is_unbuffered)  # type: ignore[misc]


def _stream(number: int, mode: str, errors: str, *, is_unbuffered: bool) -> io.TextIOWrapper:
    # As `create_stdio` of CPython's pylifecycle.c does it.
    raw = io.FileIO(number, f"{mode}b", closefd=False)
    raw.name = ("<stdin>", "<stdout>", "<stderr>")[number]
    binary = io.BufferedReader(raw) if mode == "r" else raw if is_unbuffered else io.BufferedWriter(raw)
    stream = io.TextIOWrapper(
        binary,
        encoding="utf-8",
        errors=errors,
        newline="\n",
        line_buffering=not is_unbuffered and (number == 2 or raw.isatty()),
        write_through=is_unbuffered,
    )
    stream.mode = mode  # type: ignore[misc]
    return stream


def run(program: PythonProgram) -> NoReturn:
    """Run the program, and end this process as the interpreter would have ended it."""
    sys.argv = list(program.arguments)
    sys.orig_argv = list(program.shown)
    sys.executable = program.executable
    first = program.arguments[0]
    sys.modules["__main__"] = types.ModuleType("__main__")
    vars(sys.modules["__main__"]).update({"__annotations__": {}, "__builtins__": sys.modules["builtins"]})
    preloaded = set(sys.modules) - {"__main__"}
    gc.enable()
    code = 0
    try:
        if program.is_module:
            runpy._run_module_as_main(first, alter_argv=True)  # type: ignore[attr-defined]  # noqa: SLF001
        elif os.path.isdir(first):  # noqa: PTH112
            sys.path.insert(0, os.path.abspath(first))  # noqa: PTH100
            runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]  # noqa: SLF001
        else:
            _run_script(first, vars(sys.modules["__main__"]))
    except BaseException as error:  # noqa: BLE001  (reported, as the interpreter would)
        code = _code_of(error)
    _end(code, preloaded)


def _code_of(error: BaseException) -> int:
    """Print what the interpreter would print; return the exit code, or minus the signal by which it would end."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)  # noqa: T201
        return FAILED
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next  # without the frames of this module
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)
    return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else FAILED


def _end(code: int, preloaded: set[str]) -> NoReturn:
    """Do what matters of what the interpreter does at its end.

    All of it would take 4 ms: it takes apart each module, and for that copies each page that is shared with the template.
    """
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001  (as `multiprocessing` ends its forks)
        atexit._run_exitfuncs()  # noqa: SLF001
    except BaseException:  # noqa: BLE001  (printed and ignored, as by the interpreter)
        sys.excepthook(*sys.exc_info())
    sys.setswitchinterval(LONG_S)  # threads that are left run no more Python, as after the end of an interpreter
    is_written = _is_flushed()
    _take_apart([name for name in sys.modules if name not in preloaded])
    is_written = _is_flushed() and is_written
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if is_written or code else UNWRITTEN)


def _take_apart(names: list[str]) -> None:
    """Free modules: files of the program that were not closed are written, and its destructors run."""
    left = [weakref.ref(sys.modules.pop(name)) for name in names]
    gc.collect()  # calls destructors while the names that they use are still there
    for module in filter(None, (reference() for reference in left)):
        vars(module).clear()
    gc.collect()


def _is_flushed() -> bool:
    """Write what stdout and stderr hold back; return False if stdout cannot be written."""
    is_written = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception:  # noqa: BLE001
            is_written = is_written and stream is not sys.stdout
    return is_written


def directory_of(script: str) -> str:
    """Return where the script is, which comes first in `sys.path`."""
    return os.path.dirname(os.path.realpath(script))  # noqa: PTH120


def _run_script(script: str, names: dict[str, object]) -> None:
    path = os.path.abspath(script)  # noqa: PTH100
    sys.path.insert(0, directory_of(script))
    names.update(
        {"__file__": path, "__cached__": None, "__loader__": importlib.machinery.SourceFileLoader("__main__", path)}
    )
    with io.open_code(path) as file:
        source = file.read()
    exec(compile(source, path, "exec", dont_inherit=True), names)  # noqa: S102  (running it is the purpose)


def find(program: PythonProgram) -> str | None:
    """Return the directory that comes first in `sys.path`, or None for a module of ours.

    Raises:
        OtherStateError: there is no such program. The interpreter says so better.
    """
    if program.is_module:
        return None
    path = program.arguments[0]
    if os.path.isdir(path) and os.path.isfile(os.path.join(path, "__main__.py")):  # noqa: PTH112, PTH113, PTH118
        return os.path.abspath(path)  # noqa: PTH100
    if not os.path.isfile(path):  # noqa: PTH113
        raise OtherStateError(f"{path} cannot be found")
    return directory_of(path)
