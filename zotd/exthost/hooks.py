"""Files of hooks as extensions: the user's are one program of `zotd.bridges.hooks`, a project's another (`docs/hooks.md`).

Two, because a project's hooks need trust and end with it, and the user's own go on. The bridge gets the files and a digest
of their hooks. It reads the files itself, because argument lists are visible to every user of the machine, and refuses
hooks with another digest.
"""

import os
import shlex
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from zotd.exthost.manifest import Manifest
from zotd.wire.hooks import MAX_S, CommandHook, HookFile, HookFileError, fingerprint, read_hooks

USER, PROJECT = "hooks", "hooks-project"
"""Names of the extensions."""

FILE = "hooks.json"
"""In `$ZOT_HOME`."""

PROJECT_FILES = (".zot/hooks.json", ".claude/settings.json", ".claude/settings.local.json")

SCRIPTS = (".zot/hooks", ".claude/hooks")
"""Directories of a project for what its hooks run; all of their files are part of what is trusted."""

MAX_BYTES = 1024 * 1024
"""Longest file that is read, the same as for manifests."""

LIMIT_S = MAX_S + 5
"""How long the host waits for the bridge, which ends each hook at the hook's own time limit."""

# -E -P: PYTHON* variables and the working directory, which is a project, must not decide what is imported.
BRIDGE = (sys.executable, "-E", "-P", "-m", "zotd.bridges.hooks")


class FoundHooks(Struct):
    """The hooks of some files, in the order of the files."""

    files: list[Path] = field(default_factory=list)
    """Those that have hooks."""
    hooks: list[tuple[Path, CommandHook]] = field(default_factory=list)
    faults: dict[Path, str] = field(default_factory=dict)
    """A sentence for each file or entry that cannot be used, by a path that is different for each."""


def find_hooks(files: Sequence[Path]) -> FoundHooks:
    """Read the hooks of these files; a missing file has none. Blocks for a read of each file."""
    found = FoundHooks()
    is_off = False
    for file in files:
        try:
            read = _read(file)
        except HookFileError as error:
            found.faults[file] = f"{file}: {error}"
            continue
        found.faults |= {file / str(number): f"{file}: {fault}" for number, fault in enumerate(read.faults)}
        is_off = is_off or read.disables_all
        if read.hooks:
            found.files.append(file)
            found.hooks += [(file, hook) for hook in read.hooks]
    return FoundHooks(faults=found.faults) if is_off else found


def hook_manifest(name: str, found: FoundHooks, *, directory: Path) -> Manifest | None:
    """Return the manifest of the extension that runs these hooks in `directory`; None: there are none."""
    if not found.hooks:
        return None
    hooks = [hook for _, hook in found.hooks]
    return Manifest(
        directory=directory,
        name=name,
        argv=(*BRIDGE, name, fingerprint(hooks), *(str(file.absolute()) for file in found.files)),
        description="hooks from " + ", ".join(map(str, found.files)),
        file=found.files[0],
        guard_limit_s=LIMIT_S,
    )


def missing_programs(found: FoundHooks, *, directory: Path) -> dict[Path, str]:
    """Return a sentence for each hook whose program is a path that does not exist."""
    faults: dict[Path, str] = {}
    for file, hook in found.hooks:
        program = next(iter(words(hook, directory)), "")
        path = os.path.join(directory, program)  # noqa: PTH118
        if "/" in program and "$" not in program and not os.path.exists(path):  # noqa: PTH110
            sentence = f"{file}: {hook.event}: the program {program[:200]} of a hook does not exist"
            faults[file / hook.event / program] = sentence
    return faults


def words(hook: CommandHook, directory: Path) -> list[str]:
    """Return the words of a hook's command, with the project's directory in place of its variable."""
    if hook.args is not None:
        return [_expanded(word, directory) for word in (hook.command, *hook.args)]
    try:
        return [os.path.expanduser(_expanded(word, directory)) for word in shlex.split(hook.command)]  # noqa: PTH111
    except ValueError:  # a quotation without an end, which the shell will tell
        return []


def project_hooks(cwd: Path, *, beside: Sequence[Path | None] = ()) -> FoundHooks:
    """Read the hooks of a project; not of files in `beside`, which are the user's. Blocks."""
    others = {os.path.realpath(file) for file in beside if file is not None}
    return find_hooks([cwd / name for name in PROJECT_FILES if os.path.realpath(cwd / name) not in others])


def hook_programs(cwd: Path) -> Iterator[str]:
    """Yield the files and directories of a project that decide what its hooks do, as they are written. Blocks."""
    found = project_hooks(cwd)
    yield from (str(file) for file in found.files)
    for _, hook in found.hooks:
        yield from words(hook, cwd)


def _expanded(word: str, directory: Path) -> str:
    for variable in ("${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR"):
        word = word.replace(variable, str(directory))
    return word


def _read(path: Path) -> HookFile:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise HookFileError("it is not a file")  # opening a pipe would wait for a writer
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return HookFile()
    except OSError as error:
        raise HookFileError(f"it cannot be read: {(error.strerror or str(error)).lower()}") from error
    if len(data) > MAX_BYTES:
        raise HookFileError("it is over 1 MiB")
    return read_hooks(data)
