"""What a working directory brings along: instructions, a system prompt of the user's own, skills.

Read anew before each run, off the event loop (a directory may lie on a dead network mount), so that an edit counts
from the next prompt on; the text stays the same from step to step.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

from zotd.core.prompts import ContextFile

CONTEXT_FILES = ("AGENTS.md", "CLAUDE.md")
"""Files with instructions that a directory may have; both count, in this order."""

USER_CONTEXT_FILE = ".claude/CLAUDE.md"
"""The user's own instructions for all projects, as another agent keeps them, in the home directory."""

REFERENCE = "@AGENTS.md"
"""A `CLAUDE.md` with nothing else has only this to say: the instructions are in the other file."""

SYSTEM_FILE = "SYSTEM.md"

MAX_CONTEXT_BYTES = 64 * 1024
"""Longest file with instructions. A longer one is a document rather than instructions; it is cut, and the text says so."""


class ContextPaths(Struct, frozen=True, kw_only=True):
    """Where a session's surroundings are looked for."""

    home: Path
    """`$ZOT_HOME`."""
    user: Path
    """The user's home directory."""
    builtin_skills: Path
    cwd: Path
    trusted: bool
    """The workspace's own skills count."""
    extension_skills: Sequence[str] = ()
    """What extensions bring along."""
    claude_agents: bool = False
    """The user's agent types of Claude Code count."""
    uid: int = field(default_factory=os.getuid)
    """Whose files count, beside root's."""

    @property
    def agent_dirs(self) -> list[str]:
        """Directories of agent types, whether the project is trusted or not."""
        tops = (self.cwd / ".zot", self.cwd / ".claude", self.home, self.user / ".claude")
        return [f"{top}/agents" for top in tops]

    def skill_dirs(self) -> list[str]:
        """Skill directories, first wins: the project's, where it is trusted, then the user's, then ours."""
        names = (".zot/skills", ".claude/skills", ".agents/skills")
        project = [self.cwd / name for name in names] if self.trusted else []
        user = [self.home / "skills", self.user / ".claude/skills", self.user / ".agents/skills"]
        return [str(path) for path in (*project, *user, *self.extension_skills, self.builtin_skills)]


class WorkspaceContext(Struct, frozen=True):
    """What was found; `notes` say what was there and could not be used."""

    system: str | None
    context_files: Sequence[ContextFile]
    notes: Sequence[str]


def read(places: ContextPaths) -> WorkspaceContext:
    """Read `SYSTEM.md`, and each `AGENTS.md` and `CLAUDE.md` from the user's own down to the working directory. Blocks.

    A text that was read already, as through a link from one name to the other, is left out.
    """
    notes: list[str] = []
    system = _read_text(places.home / SYSTEM_FILE, places.uid, notes)
    own = (places.home / CONTEXT_FILES[0], places.user / USER_CONTEXT_FILE)
    texts = {path: _read_text(path, places.uid, notes) for path in own}
    for folder in _folders(places.cwd):
        for name in CONTEXT_FILES:
            path = folder / name
            texts.setdefault(path, _read_context(path, places, notes))
    found: dict[str, ContextFile] = {}
    for path, text in texts.items():
        if text is not None and text.strip() != REFERENCE:
            found.setdefault(text, ContextFile(str(path), text))
    return WorkspaceContext(system, list(found.values()), notes)


def _read_context(path: Path, places: ContextPaths, notes: list[str]) -> str | None:
    """Return the text of a file of the project; one that leads out of it is left out and noted.

    It goes to the vendor with the first prompt, and a repository could link it to a private key.
    """
    top, real = _folders(places.cwd)[0], Path(os.path.realpath(path))
    if real.is_relative_to(os.path.realpath(top)):
        return _read_text(real if real != path else path, places.uid, notes)
    if real.exists():
        notes.append(f"{path} leads to {real}, outside of {top}, and is not used; copy the file there if it is wanted")
    return None


def _folders(cwd: Path) -> list[Path]:
    """From the root of the repository that `cwd` lies in down to it; without a repository only `cwd`."""
    for folder in (cwd, *cwd.parents):
        if (folder / ".git").exists():
            below = cwd.relative_to(folder).parts
            return [folder.joinpath(*below[:depth]) for depth in range(len(below) + 1)]
    return [cwd]


def _read_text(path: Path, uid: int, notes: list[str]) -> str | None:
    """The file's text, None if there is no file; a file of another user is left out and noted.

    Instructions steer an agent with a shell, so another user's file in a shared directory must not count.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            found = os.fstat(file.fileno())
            if found.st_uid not in {0, uid} or not stat.S_ISREG(found.st_mode):
                notes.append(f"{path} belongs to another user, or is not a regular file, and is not used")
                return None
            data = file.read(MAX_CONTEXT_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        notes.append(f"{path} cannot be read: {error.strerror}")
        return None
    text = data[:MAX_CONTEXT_BYTES].decode(errors="replace")
    if len(data) > MAX_CONTEXT_BYTES:
        notes.append(f"{path} is longer than {MAX_CONTEXT_BYTES // 1024} KiB; the rest is left out")
    return text


def _without_waiting(path: str, flags: int) -> int:
    """Opens a named pipe without waiting for a writer; a plain `open` would block the thread for ever."""
    return os.open(path, flags | os.O_NONBLOCK)
