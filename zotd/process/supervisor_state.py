"""What a job supervisor is given, and the file in which it says what has become of its command.

    order ──stdin──> supervisor ──create──> STATE: starting ──replace──> running ──replace──> ended
                                   └── refused: a daemon has created it before, as `abandoned`

The file is created once, so a daemon that finds none can make sure that the command never starts. Later versions replace it whole.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from zotd.decodable import decodable
from zotd.paths import make_private_dir
from zotd.process.census import Identity, is_alive, world

MAX_BYTES = 64 * 1024
"""Most of a state that is read. It has a few hundred bytes; a command could have written another one."""

STARTING, RUNNING, ENDED, ABANDONED = "starting", "running", "ended", "abandoned"


class SupervisorOrder(Struct, frozen=True):
    """What a supervisor needs to run a command."""

    home: str
    """The home of zot, where its ledger of children is."""
    what: str
    """A description for log messages and the ledger."""
    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    output: str
    """Path of the file for the output."""
    limit_bytes: int
    """Largest size of that file."""
    state: str
    """Path of the file with the `SupervisorState`."""


class SupervisorState(Struct, frozen=True, kw_only=True):
    """The state of a command that a supervisor runs."""

    state: str
    """One of the constants of this module."""
    world: str = ""
    """The boot and the pid namespace in which the supervisor runs; see `census.world`."""
    supervisor: Identity | None = None
    """None if it was abandoned before it started."""
    pid: int = 0
    """The command, which leads its own process group; 0: it has not started."""
    mark: str = ""
    """Value of `census.MARK` in the command and all that it starts."""
    began: float = 0.0
    """When the command was started, in seconds since the epoch."""
    bases: Sequence[tuple[int, int]] = ()
    """For the files that the output has had lately: the inode, and the offset of the first byte in the whole output."""
    exit: int | None = None
    """Exit code, 128 + N after signal N; None: it has not ended, or the code is unknown."""
    error: str = ""
    """Why the command could not be started."""
    output_bytes: int = 0
    """Length of the whole output, once it has ended."""
    failure: str = ""
    """Why a part of the output could not be kept."""
    took_s: float = 0.0
    """How long the command ran, in seconds."""

    @property
    def is_supervised(self) -> bool:
        """Whether the supervisor lives, so that the state can still change."""
        return self.supervisor is not None and self.world == world() and is_alive(self.supervisor)


def create_state(path: Path, state: SupervisorState) -> bool:
    """Write the first state, durably; returns False, and writes nothing, if there is one already. Blocks. Raises OSError."""
    make_private_dir(str(path.parent))
    draft = _draft(path, state)
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    _sync_directory(path)
    return True


def replace_state(path: Path, state: SupervisorState) -> None:
    """Replace the state, durably. Blocks. Raises OSError."""
    _draft(path, state).replace(path)
    _sync_directory(path)


def read_state(path: Path) -> SupervisorState | None:
    """Return the state; None if there is none that can be read. Blocks for 30 us."""
    try:
        # A command could have put a link or a pipe there.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return msgspec.json.decode(file.read(MAX_BYTES), type=decodable(SupervisorState))
    except (OSError, msgspec.MsgspecError):
        return None


def _draft(path: Path, state: SupervisorState) -> Path:
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    with suppress(FileNotFoundError):
        draft.unlink()
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(state))
        file.flush()
        os.fsync(file.fileno())
    return draft


def _sync_directory(path: Path) -> None:
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
