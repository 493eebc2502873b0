"""The program: `python -m zotd.bridges.hooks NAME DIGEST FILE...`, on the stdin and stdout that the host gives it."""

import asyncio
import os
import sys
from pathlib import Path

from zotd.bridges.hooks.bridge import HookBridge
from zotd.bridges.host_link import HostLink, taken_over
from zotd.sanitize import escaped
from zotd.wire.hooks import CommandHook, HookFileError, fingerprint, read_hooks
from zotd.wire.version import VERSION


def main() -> int:
    """Run the hooks of the files until the host ends it; return the exit code."""
    stdin, stdout = taken_over()
    return asyncio.run(_run(sys.argv[1], sys.argv[2], sys.argv[3:], (stdin, stdout)))


async def _run(name: str, digest: str, files: list[str], streams: tuple[int, int]) -> int:
    link = await HostLink.opened(*streams)
    try:
        link.send({"type": "hello", "name": name, "version": VERSION, "capabilities": ["ready"]})
        try:
            hooks = _hooks(files, digest)
        except HookFileError as error:
            # People see the last line of the log as the reason.
            sys.stderr.write(escaped(str(error)) + "\n")
            return 1
        await HookBridge(hooks, link, os.environ, str(Path.cwd())).run()
    finally:
        await link.close()
    return 0


def _hooks(files: list[str], digest: str) -> list[CommandHook]:
    """Read the hooks. A file may have changed since the host read it, so the digest is compared."""
    hooks: list[CommandHook] = []
    for file in files:
        try:
            hooks += read_hooks(Path(file).read_bytes()).hooks
        except OSError as error:
            raise HookFileError(f"{file} cannot be read: {error.strerror}") from error
    if fingerprint(hooks) != digest:
        raise HookFileError("the hooks have changed since they were loaded; run: zotctl ext reload")
    return hooks


if __name__ == "__main__":
    sys.exit(main())
