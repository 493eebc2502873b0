"""The program of the bridge: sends `hello` at once, and only then imports the MCP package."""

import asyncio
import os
import sys
from pathlib import Path

from zotd import logs
from zotd.sanitize import escaped
from zotd.sdk.pipe import HostPipe, print_to_log
from zotd.wire.mcp import McpServer, ServerError, expanded, fingerprint, read_servers, secrets
from zotd.wire.version import VERSION

CAPABILITIES = ("tools", "tool_cancel", "tool_progress", "ready")
"""`ready` announces the frame `ready`, so the host does not take silence before it as the end of registrations."""


def main() -> int:
    """Bridge to the server `argv[2]` of the file `argv[1]` until the host ends it; return the exit code.

    `argv[3]` is the digest of the entry that the host has read; an entry with another digest is not started.
    """
    file, name, *digest = sys.argv[1:]
    print_to_log()
    pipe = HostPipe()
    pipe.open({"type": "hello", "name": f"mcp-{name}", "version": VERSION, "capabilities": CAPABILITIES})
    with logs.configured(None, level="info", stderr=True):
        try:
            server = _definition(Path(file), name, *digest)
            # The import takes half a second to a second and 60 MB. On a busy machine, a hello after it would be too late.
            from zotd.bridges.mcp.bridge import McpBridge  # noqa: PLC0415

            asyncio.run(McpBridge(name, server, pipe).run())
        except ServerError as error:
            # People see the last line of the log as the reason.
            sys.stderr.write(escaped(logs.masked(f"the MCP server {name} {error}")) + "\n")
            return 1
    return 0


def _definition(file: Path, name: str, digest: str | None = None) -> McpServer:
    """Read the server's entry. The file may have changed since the host read it, so the digest is compared."""
    try:
        entry = read_servers(file.read_bytes()).get(name)
    except (OSError, ServerError) as error:
        raise ServerError(f"cannot be looked up: {file}: {error}") from error
    if entry is None:
        raise ServerError(f"is not in {file} any more")
    if isinstance(entry, ServerError):
        raise ServerError(f"cannot be used: {entry}")
    if digest is not None and fingerprint(entry) != digest:
        raise ServerError(f"has changed in {file} since it was loaded; reload it, and trust the directory again")
    server = expanded(entry, os.environ)
    # From here on these values are masked in the log, before the server can fail with a message that contains them.
    for secret in (*secrets(entry, os.environ), *secrets(server, {})):
        logs.hide(secret)
    return server


if __name__ == "__main__":
    sys.exit(main())
