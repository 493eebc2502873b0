"""Selects the variables that a client may send to the daemon (`docs/protocol.md`), and those that locate the daemon."""

TYPE_CHECKING = False  # as `typing` has it: `zotctl ping` imports neither that nor `collections`, which take 2 ms
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TRUST = "ZOT_TRUST"
"""Set to `1` to trust the working directory's own code, as long as this environment is used."""

HOST = "ZOT_HOST"
"""A daemon on another machine: a URL, or a host for ssh. Empty or unset: the daemon of this machine."""

TOKEN_FILE = "ZOT_TOKEN_FILE"  # noqa: S105  (the variable's name)
"""File with the token for that daemon."""

CA_FILE = "ZOT_CA_FILE"
"""Certificates (PEM) to verify that daemon with; unset: those that the system trusts."""

FLAGS = {"--host": HOST, "--token-file": TOKEN_FILE, "--ca-file": CA_FILE}
"""Flags that every client accepts, and the variables that they set."""


def shared(env: "Mapping[str, str]") -> dict[str, str]:
    """Return the environment without `ZOT*_TOKEN` and `ZOTCORE_*`, which are meant for one process only."""
    return {name: value for name, value in env.items() if not _is_private(name)}


def sendable(env: "Mapping[str, str]") -> dict[str, str]:
    """Return those of `shared` that are valid UTF-8; JSON cannot carry others."""
    return {name: value for name, value in shared(env).items() if _is_text(name + value)}


def without_flags(args: "Sequence[str]") -> tuple[list[str], dict[str, str]]:
    """Return `args` without `FLAGS`, and the variables that they set. A flag without its value is left for the parser.

    Called before anything else parses the command line: `zotctl --host H ping` and `zotctl ping --host H` are the same,
    and `ping` needs no argument parser. Arguments after `--` are not changed.
    """
    rest: list[str] = []
    variables: dict[str, str] = {}
    words = iter(args)
    for word in words:
        if word == "--":
            return [*rest, word, *words], variables
        flag, is_joined, value = word.partition("=")
        if flag not in FLAGS:
            rest.append(word)
        elif is_joined:
            variables[FLAGS[flag]] = value
        else:
            following = next(words, None)
            if following is None:
                rest.append(word)
            else:
                variables[FLAGS[flag]] = following
    return rest, variables


def _is_text(words: str) -> bool:
    """Return whether JSON can carry the string, which may contain surrogates for bytes that are not UTF-8."""
    if words.isascii():
        return True
    try:
        words.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_private(name: str) -> bool:
    return name.startswith("ZOTCORE_") or (name.startswith("ZOT") and name.endswith("_TOKEN"))
