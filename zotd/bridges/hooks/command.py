"""Runs the command of one hook: input on stdin, bounded output, and an end at its time limit."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from zotd.process import spawn
from zotd.process.child import PipeReader
from zotd.wire.hooks import CommandHook

OUTPUT_BYTES = 256 * 1024
"""Most bytes of stdout, and of stderr, that are kept. A hook that writes more goes on; what is more is dropped."""


@dataclass(frozen=True, slots=True)
class HookRun:
    """How a hook's command ended."""

    code: int | None
    """Its exit code, or minus a signal's number; None if it was ended at its time limit or could not be started."""
    stdout: str = ""
    stderr: str = ""
    failure: str = ""
    """Why there is no exit code, as the end of a sentence that begins with the hook."""


async def run(hook: CommandHook, given: bytes, *, cwd: str, env: Mapping[str, str]) -> HookRun:
    """Run the hook with `given` on its stdin. Never raises; if cancelled, the command's process group is ended."""
    stdout, stderr = _Kept(), _Kept()
    try:
        # A file rather than a pipe: the command may read all of it, a part or nothing, and no write ever blocks.
        with tempfile.TemporaryFile() as source:
            source.write(given)
            source.seek(0)
            code = await _code(hook, source.fileno(), stdout, stderr, cwd=cwd, env=env)
    except TimeoutError:
        return HookRun(None, failure=f"did not end within {hook.limit_s:g} s and was stopped")
    except (OSError, ValueError) as error:
        return HookRun(None, failure=f"could not be started: {error}")
    return HookRun(code, stdout.text, stderr.text)


async def _code(
    hook: CommandHook, stdin: int, stdout: "_Kept", stderr: "_Kept", *, cwd: str, env: Mapping[str, str]
) -> int:
    readable, writable = os.pipe()
    errors = PipeReader(readable, stderr.add)
    try:
        try:
            argv = _argv(hook, env)
            child = spawn(argv, cwd=cwd, env=env, on_output=stdout.add, stdin=stdin, stderr=writable)
        finally:
            os.close(writable)
        async with child, asyncio.timeout(hook.limit_s):
            code = await child.wait()
        # What it left in the background may hold the pipe for ever, so only what is in it now is read.
        errors.drain()
        return code
    finally:
        errors.close()


def _argv(hook: CommandHook, env: Mapping[str, str]) -> list[str]:
    if hook.args is not None:
        return [hook.command, *hook.args]
    shell = shutil.which("bash", path=env.get("PATH")) or "/bin/sh"
    return [shell, "-c", hook.command]


class _Kept:
    """The beginning of an output."""

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, chunk: bytes) -> None:
        self._data += chunk[: OUTPUT_BYTES - len(self._data)]

    @property
    def text(self) -> str:
        return self._data.decode(errors="replace").strip()
