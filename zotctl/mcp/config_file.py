"""`mcp.json` as a person edits it: read with its faults, changed in one place, everything else kept."""

import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from zotd import paths
from zotd.client.errors import ClientError
from zotd.wire.mcp import McpServer, ServerError, read_servers

MAX_BYTES = 1024 * 1024
"""Longest file that is read, as the daemon has it."""

SERVERS = "mcpServers"

NEW_MODE = 0o600
"""Mode of a new file of the user's own; headers and variables in it may be secrets."""


def own_path() -> str:
    """Return the file for all sessions."""
    return os.path.join(paths.zot_home(os.environ), "mcp.json")


def project_path() -> str:
    """Return the file of the current directory."""
    return os.path.abspath(".mcp.json")


class ConfigFile:
    """One of the two files."""

    def __init__(self, path: str, *, is_of_project: bool) -> None:
        """Read nothing yet."""
        self.path = path
        self.is_of_project = is_of_project

    def servers(self) -> Mapping[str, McpServer | ServerError]:
        """Return the entries by name; empty if there is no file.

        Raises:
            ClientError: the file cannot be read, or is invalid as a whole.
        """
        data = self._data()
        if data is None:
            return {}
        try:
            return read_servers(data)
        except ServerError as error:
            raise ClientError(f"{self.path}: {error}") from error

    def put(self, name: str, entry: Mapping[str, object], *, replace: bool) -> None:
        """Add an entry.

        Raises:
            ClientError: it is invalid, there is one of this name and not `replace`, or the file cannot be changed.
        """
        try:
            found = read_servers(json.dumps({SERVERS: {name: entry}}).encode())[name]
        except ServerError as error:  # text that is not Unicode
            raise ClientError(f"this cannot be written as JSON: {error}") from error
        if isinstance(found, ServerError):
            raise ClientError(f'"{name[:80]}" cannot be added: {found}')
        with self._locked():
            whole, entries = self._content()
            if name in entries and not replace:
                raise ClientError(f'{self.path} has a server "{name}" already; to replace it, use --force')
            entries[name] = entry
            self._write(whole)

    def remove(self, name: str) -> bool:
        """Remove an entry; return False if there is none. Raises ClientError."""
        if not os.path.exists(self.path):
            return False
        with self._locked():
            whole, entries = self._content()
            if name not in entries:
                return False
            del entries[name]
            self._write(whole)
        return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Be the only one that changes the file; its directory exists. Locks the directory, so that no file is left there."""
        directory = os.path.dirname(os.path.realpath(self.path))
        try:
            os.makedirs(directory, mode=paths.PRIVATE, exist_ok=True)
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise ClientError(f"cannot write {self.path}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _content(self) -> tuple[dict[str, object], dict[str, object]]:
        """Return the whole file and, as a part of it, the entries."""
        data = self._data()
        try:
            whole = {} if data is None else json.loads(data)
            entries = whole.setdefault(SERVERS, {})
        except (ValueError, AttributeError, RecursionError) as error:
            raise ClientError(f"{self.path} is not a JSON object ({error}); correct it first") from error
        if not isinstance(entries, dict):
            raise ClientError(f"{self.path}: `{SERVERS}` is not an object; correct it first")
        return whole, entries

    def _data(self) -> bytes | None:
        try:
            with open(self.path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ClientError(f"cannot read {self.path}: {error.strerror}") from error
        if len(data) > MAX_BYTES:
            raise ClientError(f"{self.path} is over 1 MiB")
        return data

    def _write(self, whole: dict[str, object]) -> None:
        """Replace the file: afterwards, and after a crash, it is the new one or the old one."""
        real = os.path.realpath(self.path)  # a link into a repository of settings stays one
        try:
            content = json.dumps(whole, indent=2, ensure_ascii=False).encode() + b"\n"
        except UnicodeEncodeError:  # half of a surrogate pair, which has to be escaped
            content = json.dumps(whole, indent=2).encode() + b"\n"
        try:
            with tempfile.NamedTemporaryFile(dir=os.path.dirname(real), prefix=".mcp.", delete=False) as draft:
                try:
                    draft.write(content)
                    draft.flush()
                    os.fchmod(draft.fileno(), self._mode(real))
                    os.fsync(draft.fileno())
                    os.replace(draft.name, real)
                except BaseException:
                    os.unlink(draft.name)
                    raise
        except OSError as error:
            raise ClientError(f"cannot write {self.path}: {error.strerror}") from error

    def _mode(self, path: str) -> int:
        """Return the mode of the file; of a new one, what is usual for its place."""
        with suppress(FileNotFoundError):
            return stat.S_IMODE(os.stat(path).st_mode)
        if not self.is_of_project:
            return NEW_MODE
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def files() -> tuple[ConfigFile, ConfigFile]:
    """Return the file of the project, whose entries count first, and that for all sessions."""
    return ConfigFile(project_path(), is_of_project=True), ConfigFile(own_path(), is_of_project=False)


def found(name: str) -> tuple[ConfigFile, McpServer]:
    """Return the entry that counts here, and its file.

    Raises:
        ClientError: there is none, or it is invalid.
    """
    for file in files():
        entry = file.servers().get(name)
        if isinstance(entry, ServerError):
            raise ClientError(f'{file.path}: the server "{name[:80]}" is not used: {entry}')
        if entry is not None:
            return file, entry
    raise ClientError(f'there is no MCP server "{name[:80]}" here; to see which there are, run: zotctl mcp list')
