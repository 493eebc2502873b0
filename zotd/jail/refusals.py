"""What a jail has refused a command, read from the command's output: there is no other sign of it.

A program reports a refusal in its own words, with the text of the system's error. A line counts only if it names a path
that the policy refuses and the user could reach without a jail; what the system would refuse anyway is not the jail's.
"""

import os
import re
from collections.abc import Iterator

from zotd.jail.grants import KERNEL, place_for
from zotd.jail.policy import JailPolicy, Network, is_in

NAMED_MAX = 3
"""Most refusals that are named; the others follow from the same cause."""

LOOKED_AT_LINES = 200
"""Lines at the end of the output that are looked at. An error that ends a command is in the last ones."""

_REASON = "permission denied|operation not permitted|read-only file system"

_DENIED = re.compile(f"{_REASON}|EACCES|EPERM|EROFS", re.IGNORECASE)

_MISSING = re.compile(r"no such file or directory|ENOENT", re.IGNORECASE)
"""What bubblewrap lets programs say about a hidden file."""

_PROGRAM = re.compile(r"^/[^\s:]+: (?!permission denied|read-only|no such|operation not)", re.IGNORECASE)
"""The program that reports the error, at the beginning of the line."""

_NETWORK = re.compile(
    r"network is unreachable|temporary failure in name resolution|could not resolve host|name or service not known"
    r"|getaddrinfo EAI_AGAIN",
    re.IGNORECASE,
)

_WITHOUT = {
    Network.OFF: "use the network",
    Network.PROXIED: "use the network, or resolve names, other than through the proxy that HTTP_PROXY names",
}

_PATH = re.compile(r"(?:^|(?<=[\s'\"`\u2018\u2019\u201c(\[=:]))(/[^\s'\"`\u2018\u2019\u201c\u201d:;,()\[\]]*)")


_EXACT = re.compile(
    rf"['\u2018](/[^'\u2019]+)['\u2019](?![$'\"])|\"(/[^\"]+)\"|(?:^|[\s:=(])(/[^:]*?): (?:{_REASON})", re.IGNORECASE
)
"""A path whose end is certain, whatever characters it has: in quotation marks, or before the reason."""

_REMOVES = re.compile(r"\b(?:remov|unlink|renam|mov|dele(?:te|ti)|replac|rmdir)", re.IGNORECASE)
"""What is said when the entry of a directory was to be changed, and not only the content of the file."""


def refused(output: str, policy: JailPolicy) -> list[str]:
    """Return what the policy has refused, as clauses that follow "it may not", without duplicates. Blocks for a few `stat`."""
    found: dict[str, None] = {}
    for said in _last_lines(output):
        is_missing = bool(_MISSING.search(said))
        if is_missing or _DENIED.search(said):
            clauses = (_clause(path, policy, is_missing=is_missing) for path in _PATH.findall(said))
            found.update((clause, None) for clause in clauses if clause)
        if policy.network is not Network.OPEN and _NETWORK.search(said):
            found[_WITHOUT[policy.network]] = None
    return list(found)[:NAMED_MAX]


def closed_places(output: str, policy: JailPolicy) -> list[str]:
    """Return what a person can open so that the command can change what it was refused, without duplicates, few.

    Real paths of files and directories (`zotd.jail.grants.place_for`). Blocks for a few `stat`. Only what is named in full counts: a
    relative path is not one, because the directory in which the program was is not known.
    """
    found: dict[str, None] = {}
    for said in _last_lines(output):
        if not _DENIED.search(said):
            continue
        for match in _EXACT.finditer(said):
            path = os.path.realpath(match[1] or match[2] or match[3])
            place = place_for(path, policy, removes=bool(_REMOVES.search(said)))
            if place is not None:
                found[place] = None
    outermost = [path for path in found if not is_in(path, [other for other in found if other != path])]
    return outermost[:NAMED_MAX]


def _last_lines(output: str) -> Iterator[str]:
    """Yield the last lines, without the name of the program that each begins with. A NUL is in no path."""
    for line in output.replace("\0", "\n").splitlines()[-LOOKED_AT_LINES:]:
        yield _PROGRAM.sub("", line)


def _clause(path: str, policy: JailPolicy, *, is_missing: bool) -> str:
    # Whether a hidden file exists is not looked at: the model could ask about any by printing such a line.
    real = os.path.realpath(path)
    if not policy.may_read(real):
        return f"read {path}"
    if is_in(real, policy.sockets):
        return f"connect to {path}"
    if is_missing or policy.may_write(real) or is_in(real, KERNEL):
        return ""
    exists = os.path.lexists(real)
    could = os.access(real if exists else os.path.dirname(real), os.W_OK)
    return f"change {path}" if could else ""
