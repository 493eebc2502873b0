"""What a working directory brings along: instructions, a system prompt of the user's own, skills.

Read anew before each run, off the event loop (a directory may lie on a dead network mount), so that an edit counts
from the next prompt on; the text stays the same from step to step.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from zotd.core.prompts import ContextFile

CONTEXT_FILE = "AGENTS.md"
SYSTEM_FILE = "SYSTEM.md"

MAX_CONTEXT_BYTES = 64 * 1024
"""Of one AGENTS.md; more than that is no instruction but a document, and is cut with a word about it."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a session's surroundings are looked for."""

    home: Path
    """`$ZOT_HOME`."""
    user: Path
    """The user's home directory."""
    builtin_skills: Path
    cwd: Path
    trusted: bool
    """The workspace's own skills count."""

    def skill_dirs(self) -> list[str]:
        """Skill directories, first wins: the project's, where it is trusted, then the user's, then ours."""
        names = (".zot/skills", ".claude/skills", ".agents/skills")
        project = [self.cwd / name for name in names] if self.trusted else []
        user = [self.home / "skills", self.user / ".claude/skills", self.user / ".agents/skills"]
        return [str(path) for path in (*project, *user, self.builtin_skills)]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was found; `notes` say what was there and could not be used."""

    system: str | None
    context_files: Sequence[ContextFile]
    notes: Sequence[str]


def read(places: Places) -> Surroundings:
    """Read `SYSTEM.md` and every `AGENTS.md` from the global one down to the working directory. Blocks."""
    notes: list[str] = []
    system = _read_text(places.home / SYSTEM_FILE, notes)
    files = [places.home / CONTEXT_FILE, *(folder / CONTEXT_FILE for folder in _folders(places.cwd))]
    found = [ContextFile(str(path), text) for path in files if (text := _read_text(path, notes)) is not None]
    return Surroundings(system, found, notes)


def _folders(cwd: Path) -> list[Path]:
    """From the root of the repository that `cwd` lies in down to it; without a repository only `cwd`."""
    for folder in (cwd, *cwd.parents):
        if (folder / ".git").exists():
            below = cwd.relative_to(folder).parts
            return [folder.joinpath(*below[:depth]) for depth in range(len(below) + 1)]
    return [cwd]


def _read_text(path: Path, notes: list[str]) -> str | None:
    """The file's text, None when there is none; somebody else's file is left out and noted.

    Instructions steer an agent with a shell, so another user's file in a shared directory must not count.
    """
    try:
        with path.open("rb") as file:
            owner = os.fstat(file.fileno()).st_uid
            if owner not in {0, os.getuid()}:
                notes.append(f"{path} belongs to another user and is not used")
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
