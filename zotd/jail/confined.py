"""Restricts itself by Landlock, and becomes a command, for programs that are started by others than the daemon's own thread.

    python -I -m zotd.jail.confined POLICY COMMAND...

POLICY is a `JailPolicy` as JSON. It holds paths only, so it may stand in the list of processes.
"""

import os
import sys

import msgspec

from zotd.jail.errors import JailError
from zotd.jail.handover import restore_what_python_changes
from zotd.jail.landlock import LandlockRuleset, landlock_abi
from zotd.jail.policy import JailPolicy


def words(policy: JailPolicy) -> list[str]:
    """Return the words in front of a command that run it under `policy`."""
    return [sys.executable, "-I", "-m", __spec__.name, msgspec.json.encode(policy).decode()]


def main(policy: str, command: list[str]) -> None:
    """Become the command. Exits with 126 or 127, and one sentence, if it would not be confined or cannot be run."""
    kept = msgspec.json.decode(policy, type=JailPolicy)
    try:
        LandlockRuleset(kept, landlock_abi()).restrict_thread()
    except JailError as error:
        _fail(f"{command[0]} was not started, because it would not be confined: {error}", 126)
    restore_what_python_changes()
    os.environ.update(kept.variables)
    try:
        os.execvp(command[0], command)  # noqa: S606  (it is the purpose)
    except OSError as error:
        _fail(f"{command[0]} cannot be run: {error.strerror}", 127 if isinstance(error, FileNotFoundError) else 126)


def _fail(sentence: str, code: int) -> None:
    os.write(2, f"zot: {sentence}\n".encode(errors="backslashreplace"))
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
