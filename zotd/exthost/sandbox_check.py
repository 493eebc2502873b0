"""Checks what a manifest asks for in its `sandbox`. Separate from `jails`, which loads jails and the proxy."""

from zotd.proxy.errors import HostError
from zotd.proxy.rules import parse_rule
from zotd.wire.sandbox import SandboxRequest

ANY_HOST = "open"


def needs_proxy(sandbox: SandboxRequest | None) -> bool:
    """Return whether a program reaches hosts through the proxy."""
    return sandbox is not None and sandbox.network not in {ANY_HOST, ()}


def fault(sandbox: SandboxRequest) -> str | None:
    """Return why a `sandbox` is invalid, as a sentence; None: it is not."""
    for path in (*sandbox.write, *sandbox.read):
        if not path.startswith(("/", "~/")) or "\0" in path or not path.removeprefix("~/").strip("/"):
            return f'`sandbox` names "{path[:80]}"; a path is absolute or begins with ~/'
    if sandbox.network != ANY_HOST:
        for host in sandbox.network:
            try:
                parse_rule(host)
            except HostError as error:
                return f"`network` of `sandbox`: {error}"
    return None
