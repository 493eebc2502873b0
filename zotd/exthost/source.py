"""Parses the argument of `zotctl ext install`: a directory or a git repository (`docs/decisions/0008-installing-and-trust.md`).

    ~/work/notes      https://host/ann/notes      ssh://git@host/notes.git#v1.2      git@host:ann/notes@v1.2

Works on the text only. Text that git would interpret as an option, a program to run or a file is refused before git runs.
"""

import re
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from zotd.exthost.installed import InstallError

SCHEMES = ("https", "http", "ssh", "git")

MAX_LENGTH = 2048

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

_HELPER = re.compile(r"[A-Za-z0-9+.-]+::")
"""`ext::sh -c …`: git would run the program `git-remote-ext`."""

_SCP = re.compile(r"(?:(?P<user>[^/:@]+)@)?(?P<host>\[[^/\]]+\]|[^/:@]+):(?P<path>.+)")
"""`user@host:path`; a colon after a slash is part of a file name."""

_PATH_WITH_REF = re.compile(r"(?P<path>[^@]*[^@/])@(?P<ref>[^@]+)")
"""`path@ref`; in `/@scope/name` it is part of the path."""

_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]*")
"""Narrower than git's own rule: no refspecs (`a:b`, `+a`), no expressions (`a~1`, `a^{}`, `@{-1}`)."""


class Directory(Struct, frozen=True):
    """A directory on this machine, to be copied."""

    path: Path
    """Absolute, with links resolved."""

    @property
    def location(self) -> str:
        """Identifies the source when the extension is installed again."""
        return str(self.path)


class Repository(Struct, frozen=True):
    """A git repository elsewhere."""

    location: str
    """The URL without the ref; identifies the source when the extension is installed again."""
    ref: str = ""
    """A branch, a tag or a full commit id; empty for the repository's HEAD."""


Source: TypeAlias = Directory | Repository


def parse(text: str, *, cwd: Path) -> Source:
    """Parse `text`. A relative path is relative to `cwd`; whether the source exists is not checked.

    Raises:
        InstallError: `text` is neither a directory nor a URL that git may be given.
    """
    if not text or len(text) > MAX_LENGTH or not text.isprintable():
        raise InstallError(f"give the path of a directory or the URL of a git repository, not {text[:80]!a}")
    if text.startswith("-"):
        raise InstallError(f'"{text}" looks like an option; write ./{text} when it is a directory')
    # Before the SCP form, which would match `ext::…` as a host and a path.
    if _HELPER.match(text):
        raise InstallError(f'"{text}" would make git run a program; use a URL with {_or(SCHEMES)}')
    scheme = _SCHEME.match(text)
    if scheme:
        return _from_url(text, scheme[1])
    scp = _SCP.fullmatch(text)
    if scp:
        return _from_scp(text, scp)
    return Directory((cwd / text).resolve())


def _from_url(text: str, scheme: str) -> Repository:
    if scheme not in SCHEMES:
        way_out = "; give the path" if scheme.lower() == "file" else ""
        raise InstallError(f'"{scheme}:" is not supported{way_out}; use a URL with {_or(SCHEMES)}')
    head = f"{scheme}://"
    authority, slash, path = text.removeprefix(head).partition("/")
    try:
        # Only the authority is parsed, because the path may contain the `@` or `#` of a ref.
        parts = urlsplit(head + authority)
        # Accessing the port raises ValueError if it is invalid.
        user, password, host, _ = parts.username, parts.password, parts.hostname, parts.port
    except ValueError as error:
        raise InstallError(f'"{text}" is not a URL: {error}') from error
    if password is not None or (user is not None and scheme != "ssh"):
        raise InstallError(
            "a URL with a password or a token would be stored and shown; use ssh for private repositories"
        )
    if "%" in authority:  # git and ssh decode it and would see another host than this check
        raise InstallError(f'"{text}" has a % in its host name; write the name without escapes')
    _check_host(text, user, host)
    path, ref = _split_ref(path)
    return Repository(f"{head}{authority}{slash}{path}", ref)


def _from_scp(text: str, scp: re.Match[str]) -> Repository:
    _check_host(text, scp["user"], scp["host"])
    path, ref = _split_ref(scp["path"])
    return Repository(text[: scp.start("path")] + path, ref)


def _check_host(text: str, user: str | None, host: str | None) -> None:
    # ssh would interpret `ssh://-oProxyCommand=…` as an option (CVE-2017-1000117).
    if not host or host.startswith("-") or (user or "").startswith("-") or " " in text:
        raise InstallError(f'"{text}" has no valid host; check the URL')


def _split_ref(path: str) -> tuple[str, str]:
    """`path#ref` or `path@ref`; with a `#`, every `@` is part of the path."""
    path, hash_, ref = path.partition("#")
    if not hash_:
        found = _PATH_WITH_REF.fullmatch(path)
        if not found:
            return path, ""
        path, ref = found["path"], found["ref"]
    # `..` is allowed by the pattern, but git reads `a..b` as a range.
    if not _REF.fullmatch(ref) or ".." in ref:
        raise InstallError(f'"{ref}" is not a branch, a tag or a commit id')
    return path, ref


def _or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
