"""Parent-death signal for services: the kernel kills a service when the thread that started it ends.

`prctl(PR_SET_PDEATHSIG)` has to be called in the child. `preexec_fn` would force a `fork`, which takes 2 to 25 ms here.
`setpriv` of util-linux makes the call and then executes the program: it starts 1 ms later, and nothing blocks.

The signal reaches the service alone; `OrphanReaper.sweep` ends its descendants. Services are started on the thread of
the event loop, which outlives them all.
"""

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ASK_S = 1.0
"""Timeout of `setpriv --help` in seconds; it takes 1 ms."""

MAGIC = (b"#!", b"\x7fELF")
"""First bytes of files that `exec` accepts on every system. setpriv would run any other file as a shell script, where a
direct `exec` fails."""


def ending_with_parent(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return the command that runs `argv` with a parent-death signal, or `argv` itself where that is not possible.

    A program that cannot be started is returned unchanged, so that the caller gets the kernel's error.
    """
    prefix = _setpriv_prefix()
    program = shutil.which(argv[0], path=env.get("PATH", os.defpath)) if prefix else None
    return [*prefix, *argv] if program is not None and _is_program(program) else list(argv)


@functools.cache
def _setpriv_prefix() -> tuple[str, ...]:
    """Return the command prefix that sets the signal; empty if setpriv cannot. Blocks for 1 ms, once."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return ()
    try:
        # The setpriv of busybox and of util-linux before 2.33 does not have this option.
        told = subprocess.run([setpriv, "--help"], capture_output=True, check=False, timeout=ASK_S)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return (setpriv, "--pdeathsig", "KILL", "--") if b"--pdeathsig" in told.stdout else ()


def _is_program(path: str) -> bool:
    if not Path(path).is_absolute():  # relative to the child's working directory it may be another file
        return False
    try:
        # NONBLOCK: opening a named pipe must not block.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.read(fd, 4).startswith(MAGIC)
    except OSError:
        return False
    finally:
        os.close(fd)
