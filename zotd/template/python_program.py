"""Recognises commands that run a Python program by this interpreter, so that a fork can take the place of a cold start."""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zotd.template.thin import HARMLESS, INTERPRETER

OURS = "zotd."
"""Modules that may be run by `-m`; those of others would be searched for in the working directory."""

IGNORED_FLAGS = frozenset({"-E", "-P"})
"""Interpreter flags with which modules of ours may be run: without PYTHON* variables, without the working directory."""

HEAD_BYTES = 256
"""Longest first line of a script that the kernel reads (BINPRM_BUF_SIZE)."""

_SHEBANG = re.compile(rb"#!\s*(\S+)(?:[ \t]+(.*?))?\s*\n")


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """A script, a directory with a `__main__.py`, or a module of ours, and how the kernel would show it."""

    shown: tuple[str, ...]
    """/proc/PID/cmdline, and `sys.orig_argv`."""
    name: str
    """/proc/PID/comm."""
    executable: str
    """`sys.executable`."""
    arguments: tuple[str, ...]
    """`sys.argv`; the first is the script or the directory, or the name of the module."""
    is_module: bool = False
    ignores_variables: bool = False
    """PYTHON* variables have no effect on it (`-E`)."""


def python_program(argv: Sequence[str], env: Mapping[str, str]) -> PythonProgram | None:
    """Return the program that this command runs, or None if it is not one for this interpreter alone.

    None also if interpreter flags or variables are set whose effect a fork cannot have. Blocks for 0.1 ms.
    """
    found = _found(argv[0], env)
    if found is None:
        return None
    if _is_ours(found):
        return _by_interpreter(found, argv)
    return _by_shebang(found, argv, env)


def other_variables(
    program: Mapping[str, str], template: Mapping[str, str], *, ignores_variables: bool = False
) -> list[str]:
    """Return the variables that an interpreter reads when it starts, and that the template process has not got alike."""
    # A hook in site-packages starts coverage.
    read = ("COVERAGE_", *INTERPRETER)
    return [
        name
        for name in {**program, **template}
        if name.startswith(read)
        and name not in HARMLESS - {"PYTHONHASHSEED"}
        and not (ignores_variables and name.startswith("PYTHON"))
        and program.get(name) != template.get(name)
    ]


def _found(program: str, env: Mapping[str, str]) -> str | None:
    found = shutil.which(program, path=env.get("PATH", os.defpath))
    return found if found is not None and found.startswith("/") else None


def _is_ours(path: str) -> bool:
    """Return whether this is `sys.executable` by any of its names. Another directory may be another environment."""
    directory, own = os.path.split(path), os.path.split(sys.executable)
    return (
        os.path.basename(path).startswith("python")  # noqa: PTH119  (no Path: it is a name, and this runs at each start)
        and os.path.realpath(directory[0]) == os.path.realpath(own[0])
        and os.path.realpath(path) == os.path.realpath(sys.executable)
    )


def _by_interpreter(found: str, argv: Sequence[str]) -> PythonProgram | None:
    flags = []
    rest = list(argv[1:])
    while rest and rest[0] in IGNORED_FLAGS:
        flags.append(rest.pop(0))
    name = os.path.basename(found)  # noqa: PTH119
    if len(rest) > 1 and rest[0] == "-m" and rest[1].startswith(OURS) and set(flags) == IGNORED_FLAGS:
        return PythonProgram(tuple(argv), name, found, tuple(rest[1:]), is_module=True, ignores_variables=True)
    if flags or not rest or rest[0].startswith("-") or not rest[0]:
        return None
    return PythonProgram(tuple(argv), name, found, tuple(rest))


def _by_shebang(script: str, argv: Sequence[str], env: Mapping[str, str]) -> PythonProgram | None:
    head = _SHEBANG.match(_head(script))
    if head is None:
        return None
    interpreter, argument = os.fsdecode(head[1]), os.fsdecode(head[2] or b"")
    name = os.path.basename(script)  # noqa: PTH119
    shown = interpreter
    if interpreter in {"/usr/bin/env", "/bin/env"}:
        name = shown = argument
        found = _found(argument, env) if re.fullmatch(r"[\w.]+", argument) else None
    else:
        found = interpreter if not argument else None
    if found is None or not _is_ours(found):
        return None
    return PythonProgram((shown, script, *argv[1:]), name, found, (script, *argv[1:]))


def _head(path: str) -> bytes:
    try:
        # NONBLOCK: opening a named pipe must not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(descriptor, HEAD_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def shadowed(directory: str, loaded: frozenset[str]) -> list[str]:
    """Return the names in `loaded` that a program in this directory would import from there instead."""
    try:
        with os.scandir(directory) as entries:
            return [name for entry in entries if (name := entry.name.partition(".")[0]) in loaded]
    except OSError:
        return []
