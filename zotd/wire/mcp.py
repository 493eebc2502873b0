"""`mcp.json`, the configuration of MCP servers. The host reads which servers there are, the bridge how to reach one.

    {"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."]},
        "issues": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${ISSUES_TOKEN}"}}}}

`${NAME}` and `${NAME:-default}` in any value stand for environment variables. Other programs use the same files, so
unknown fields are ignored.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping

import msgspec

from zotd.wire.base import BadFrameError, Frozen, convert, decode
from zotd.wire.sandbox import SandboxRequest

NAME = re.compile(r"[A-Za-z0-9._-]{1,60}")
"""Pattern of a server's name; its extension is called `mcp-NAME`."""

HTTP = ("http", "streamable-http", "streamableHttp")
"""Values of `type` that programs use for MCP's streamable HTTP."""

SSE = "sse"
"""Value of `type` for HTTP+SSE, the transport of servers from before March 2025."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class ServerError(ValueError):
    """A server cannot be used; the message is one sentence without values of variables, which may be secret."""


MAX_TIMEOUT_S = 24 * 3600.0
"""Longest `timeout_s`."""


class McpServer(Frozen, frozen=True):
    """How to reach a server: start `command`, or connect to `url`; never both."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}  # noqa: RUF012  (msgspec copies an empty default)
    cwd: str = ""
    """Working directory, relative to that of the session; empty: the session's."""
    url: str = ""
    headers: dict[str, str] = {}  # noqa: RUF012
    type: str = ""
    disabled: bool = False
    sandbox: SandboxRequest | msgspec.UnsetType = msgspec.UNSET
    """What `command` is confined to; absent: it has all rights of the user."""
    timeout_s: float | msgspec.UnsetType = msgspec.UNSET
    """Time limit of a tool call without progress, in seconds; absent: as configured for extensions."""


def read_servers(data: bytes) -> dict[str, McpServer | ServerError]:
    """Return the servers of a file by name, in its order, and an error for each invalid entry.

    Raises:
        ServerError: the file as a whole is invalid.
    """
    try:
        entries = decode(data, dict[str, object]).get("mcpServers")
    except BadFrameError as error:
        raise ServerError(str(error)) from error
    if not isinstance(entries, dict):
        raise ServerError("it has no `mcpServers` object")
    return checked_servers(entries)


def checked_servers(entries: Mapping[str, object]) -> dict[str, McpServer | ServerError]:
    """Return the servers of a `mcpServers` object by name, in its order, and an error for each invalid entry."""
    return {name: _read(name, entry) for name, entry in entries.items()}


def written(servers: Mapping[str, McpServer]) -> bytes:
    """Return a file with these servers."""
    return msgspec.json.encode({"mcpServers": servers})


def literal(text: str) -> str:
    """Return how to write a value so that no `${NAME}` in it is replaced."""
    # What replaces a variable is not looked at again.
    return text.replace("${", "${ZOT_NO_VARIABLE:-$}{")


def variables(server: McpServer) -> tuple[str, ...]:
    """Return the names of the environment variables that the entry refers to, without duplicates."""
    return tuple(dict.fromkeys(found[1] for text in _texts(server) for found in _VARIABLE.finditer(text)))


def fingerprint(server: McpServer) -> str:
    """Return a digest of the entry, 64 digits."""
    return hashlib.sha256(msgspec.json.encode(server, order="deterministic")).hexdigest()


def expanded(server: McpServer, env: Mapping[str, str]) -> McpServer:
    """Return the server with its variables replaced. An empty variable counts as unset if there is a default.

    Raises:
        ServerError: a variable without a default is not set, or the URL is invalid.
    """

    def value(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        if default is not None:
            return env.get(name) or default
        if name not in env:
            raise ServerError(f"names the variable {name}, which is not set; set it, or write ${{{name}:-default}}")
        return env[name]

    def text(raw: str) -> str:
        return _VARIABLE.sub(value, raw)

    result = msgspec.structs.replace(
        server,
        command=text(server.command),
        args=tuple(map(text, server.args)),
        env={name: text(raw) for name, raw in server.env.items()},
        cwd=text(server.cwd),
        url=text(server.url),
        headers={name: text(raw) for name, raw in server.headers.items()},
    )
    # Checked after the replacement, because the scheme may come from a variable.
    if server.url and not result.url.startswith(("http://", "https://")):
        raise ServerError("has a `url` that does not begin with http:// or https://")
    return result


def secrets(server: McpServer, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the values that must be masked: variables that it refers to, its `env` and its `headers`."""
    yield from (env[name] for name in variables(server) if name in env)
    yield from server.env.values()
    yield from server.headers.values()


def _texts(server: McpServer) -> Iterator[str]:
    yield from (server.command, server.cwd, server.url, *server.args)
    yield from (*server.env.values(), *server.headers.values())


def _read(name: str, entry: object) -> McpServer | ServerError:
    if not NAME.fullmatch(name):
        return ServerError('a name has 1 to 60 letters, digits, ".", "_" and "-"')
    if not isinstance(entry, dict):
        return ServerError("it is not an object")
    try:
        # Some programs write null for fields that they do not use.
        server = convert({key: value for key, value in entry.items() if value is not None}, McpServer)
    except BadFrameError as error:
        return ServerError(str(error))
    fault = _fault(server)
    return server if fault is None else ServerError(fault)


def _fault(server: McpServer) -> str | None:
    if bool(server.command) == bool(server.url):
        return "it needs either a `command` to start or a `url`"
    if server.sandbox is not msgspec.UNSET and server.url:
        return "its `sandbox` has no effect on a `url`, because nothing is started; remove it"
    if server.timeout_s is not msgspec.UNSET and not 0 < server.timeout_s <= MAX_TIMEOUT_S:
        return "its `timeout_s` is not a number of seconds above 0, at most a day"
    if server.type not in ("", "stdio", SSE, *HTTP):
        return f'its `type` "{server.type[:80]}" is neither "stdio" nor "http" nor "sse"'
    if server.type and (server.type == "stdio") != bool(server.command):
        return f'its `type` is "{server.type}", which goes with a `{"command" if server.type == "stdio" else "url"}`'
    return None
