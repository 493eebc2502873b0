"""A leash for services: the kernel ends them in the moment in which the thread that started them ends.

`prctl(PR_SET_PDEATHSIG)` has to be called in the child. `preexec_fn` would force a `fork` (2 to 25 ms for us);
`setpriv` of util-linux calls it and becomes the program, which delays that program by 1 ms and us by nothing.

It holds the service alone, not what that has started: those wait for `OrphanReaper.sweep`. The thread is the event loop's,
which outlives all services.
"""

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ASK_S = 1.0
"""Longest wait for setpriv's help text; it takes 1 ms."""

MAGIC = (b"#!", b"\x7fELF")
"""How a program begins that `exec` takes anywhere; of anything else setpriv, unlike `exec`, would make a shell script."""


def ending_with_parent(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """The command that runs `argv` on a leash; `argv` itself where that is impossible.

    That includes a program that cannot be started, so that its starter gets the error from the kernel.
    """
    prefix = _setpriv_prefix()
    program = shutil.which(argv[0], path=env.get("PATH", os.defpath)) if prefix else None
    return [*prefix, *argv] if program is not None and _is_program(program) else list(argv)


@functools.cache
def _setpriv_prefix() -> tuple[str, ...]:
    """The command that puts the command behind it on a leash; empty where there is none. Blocks for 1 ms, once."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return ()
    try:
        # Not every setpriv can do it: that of busybox, and util-linux before 2.33.
        told = subprocess.run([setpriv, "--help"], capture_output=True, check=False, timeout=ASK_S)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return (setpriv, "--pdeathsig", "KILL", "--") if b"--pdeathsig" in told.stdout else ()


def _is_program(path: str) -> bool:
    if not Path(path).is_absolute():  # from its own working directory it may be another
        return False
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.read(fd, 4).startswith(MAGIC)
    except OSError:
        return False
    finally:
        os.close(fd)
