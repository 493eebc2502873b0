"""Commands about the workspaces whose own code may run."""

import asyncio
import logging
import os
from pathlib import Path

import msgspec

from zotd.api.dispatch import Invocation
from zotd.contributions import discovery
from zotd.store.trust import Changed, NotGrantedError, NothingToTrust, Trust, Trusted, UntrustedCode
from zotd.wire import extensions
from zotd.wire.errors import Code, CommandError

log = logging.getLogger(__name__)


async def listing(call: Invocation, params: extensions.TrustScope) -> extensions.TrustList:
    """List the trusted workspaces and whether their code has changed, or the code of one directory."""
    extension_pool = call.manager.extension_pool
    path = None if params.path is None else _checked(params.path)
    found = await asyncio.to_thread(_listed, extension_pool.trust, path)
    if path is not None:
        lines = await asyncio.to_thread(discovery.commands, extension_pool.places.python, path)
        found = [msgspec.structs.replace(one, commands=lines) for one in found]
    return extensions.TrustList(found)


async def grant(call: Invocation, params: extensions.TrustGrant) -> extensions.TrustedWorkspace:
    """Trust a workspace's current code, and start it in the workspace's sessions."""
    extension_pool = call.manager.extension_pool
    path = _checked(params.path)
    try:
        found = await asyncio.to_thread(_grant, extension_pool.trust, path, params.digest)
    except NotGrantedError as error:
        raise CommandError(Code.CONFLICT, str(error)) from error
    log.info("the workspace %s is trusted", path)
    extension_pool.trust_changed(await asyncio.to_thread(os.path.realpath, path))
    return found


async def revoke(call: Invocation, params: extensions.TrustPath) -> None:
    """Revoke the trust in a workspace, and stop its code."""
    path = _checked(params.path)
    if not await asyncio.to_thread(call.manager.extension_pool.trust.revoke, path):
        raise CommandError(Code.NOT_FOUND, f"{path} is not trusted; trust.list names what is")
    log.info("the workspace %s is no longer trusted", path)
    call.manager.extension_pool.trust_changed(await asyncio.to_thread(os.path.realpath, path))


def _checked(path: str) -> Path:
    if not path.startswith("/") or "\0" in path:
        raise CommandError(Code.BAD_REQUEST, f'a workspace must be an absolute path; "{path}" is not')
    return Path(path)


def _listed(trust: Trust, path: Path | None) -> list[extensions.TrustedWorkspace]:
    trusted = trust.workspaces()
    if path is None:
        return [_state(trust, one, is_granted=True) for one in trusted]
    if not os.path.isdir(path):  # noqa: PTH112  (Path.is_dir raises for a name that is too long)
        raise CommandError(Code.NOT_FOUND, f"{path} is not a directory")
    real = os.path.realpath(path)
    return [_state(trust, real, is_granted=real in trusted)]


def _state(trust: Trust, path: str, *, is_granted: bool) -> extensions.TrustedWorkspace:
    match trust.state(Path(path)):
        case Trusted(code):
            return extensions.TrustedWorkspace(path, "trusted", [], code.digest)
        case Changed(code, files):
            return extensions.TrustedWorkspace(path, "changed", list(files or code.items), code.digest)
        case UntrustedCode(code):
            return extensions.TrustedWorkspace(path, "unknown", list(code.items), code.digest)
        case NothingToTrust(code):
            return extensions.TrustedWorkspace(path, "trusted" if is_granted else "unknown", [], code.digest)


def _grant(trust: Trust, path: Path, digest: str | None) -> extensions.TrustedWorkspace:
    if not os.path.isdir(path):  # noqa: PTH112
        raise NotGrantedError(f"{path} is not a directory")
    trusted = trust.grant(path, digest=digest)
    return extensions.TrustedWorkspace(str(path), "trusted", list(trusted.code.items), trusted.code.digest)
