"""Confines the programs of extensions that ask for it (`docs/extensions.md`, `docs/decisions/0091-extensions-say-what-they-need.md`).

Manifest.sandbox ──> a jail for one start of the program ──> the words in front of its command
                                    └──> an outlet of the proxy, if it names hosts
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import closing
from typing import NamedTuple, TypeAlias

from zotd.exthost.sandbox_check import ANY_HOST
from zotd.jail import Jail, JailError, Mechanism, Network
from zotd.jail.site import JailSite
from zotd.paths import UnsafePathError
from zotd.proxy.on_demand import ProxyOnDemand
from zotd.proxy.rules import AllowList, parse_rule
from zotd.wire.sandbox import SandboxRequest, WorkspaceAccess

FIND_S = 10.0
"""Longest wait for a jail, which takes 20 ms: directories may be on a file system that does not answer."""

Spawn: TypeAlias = Callable[[str, Coroutine[object, object, None]], None]


class ConfinementError(ValueError):
    """A program is not started, because it would not be confined as it asks; the message continues its name."""


class ConfinedProgram(NamedTuple):
    """A program that is about to start."""

    name: str
    sandbox: SandboxRequest
    workspace: str
    """Directory of the sessions that it serves."""
    directory: str
    """Directory of its code, which it may read wherever it is."""
    data: str
    """Its data directory, which exists."""
    env: Mapping[str, str]
    """The user's environment."""


class ExtensionJails:
    """Finds jails for programs of extensions. Used on one event loop."""

    def __init__(
        self,
        spawn: Spawn,
        *,
        places: Mapping[str, str],
        proxy: ProxyOnDemand | None,
        is_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """Find nothing yet.

        Args:
            spawn: starts a named task, and cancels it when the program ends.
            places: `ZOT_HOME`, `ZOTD_SOCKET` and `ZOTD_OUTLETS` of this process, which are hidden whatever an environment says.
            proxy: connects programs to the hosts that they name; None: they reach no host.
            is_on: whether programs are confined at all, `sandbox.extensions`.
        """
        self._spawn = spawn
        self._places = places
        self._proxy = proxy
        self._is_on = is_on

    def confine(self, program: ConfinedProgram, tell: Callable[[list[str] | ConfinementError], None]) -> None:
        """Call `tell` on the event loop with the words in front of its command, or with the reason why it must not start."""

        async def find() -> None:
            try:
                found: list[str] | ConfinementError = await self.words(program)
            except ConfinementError as error:
                found = error
            tell(found)

        self._spawn(f"jail of {program.name}", find())

    async def words(self, program: ConfinedProgram) -> list[str]:
        """Return the words in front of its command, for one start within `zotd.proxy.server.HANDOVER_S`; none if switched off.

        Raises:
            ConfinementError: it would not be confined as it asks.
        """
        if not self._is_on():
            return []
        try:
            async with asyncio.timeout(FIND_S):
                jail = await asyncio.to_thread(_found, program, {**program.env, **self._places})
            with closing(jail):
                return jail.words(await self._admission(program, jail))
        except TimeoutError:
            reason = f"no jail could be made within {FIND_S:g} s, because a file system does not answer"
        except (JailError, UnsafePathError, OSError) as error:
            reason = str(error)
        raise ConfinementError(
            f"cannot be confined as its `sandbox` asks: {reason}; to start such programs with all your rights, set"
            " extensions = false in [sandbox] of config.toml"
        )

    async def _admission(self, program: ConfinedProgram, jail: Jail) -> str | None:
        if jail.policy.network is not Network.PROXIED:
            return None
        if jail.mechanism is not Mechanism.BUBBLEWRAP:
            raise JailError("it names hosts, and only bubblewrap can tell hosts apart: install bubblewrap")
        if self._proxy is None:
            return None
        rules = [parse_rule(host) for host in program.sandbox.network]
        return (await self._proxy.outlet(f"extension {program.name}", AllowList(rules))).admit()


def rights(sandbox: SandboxRequest | None) -> str:
    """Return what a program may do, as a clause for people that continues its name."""
    if sandbox is None:
        return "runs with all your rights"
    changed = ["the workspace"] if sandbox.workspace is WorkspaceAccess.WRITE else []
    changed += sandbox.write
    parts = [f"changes {', '.join(changed)}" if changed else "changes nothing but its own data"]
    if sandbox.read:
        parts.append(f"reads {', '.join(sandbox.read)}")
    if sandbox.network == ANY_HOST:
        parts.append("reaches every host")
    else:
        parts.append(f"reaches {', '.join(sandbox.network) or 'no host'}")
    return f"is confined: {'; '.join(parts)}"


def _found(program: ConfinedProgram, env: Mapping[str, str]) -> Jail:
    """Return its jail, whose policy allows everything that it asks for. Blocks."""
    from zotd.jail.computing import home_of  # noqa: PLC0415  (10 ms that no start of a daemon has to wait for)
    from zotd.jail.mechanisms import find_jail  # noqa: PLC0415

    sandbox, home = program.sandbox, os.path.realpath(home_of(env))  # a grant leads through no link
    data = os.path.realpath(program.data)
    changes, reads = ([_expanded(path, home) for path in paths] for paths in (sandbox.write, sandbox.read))
    site = JailSite(
        cwd=os.path.realpath(program.workspace) if sandbox.workspace is WorkspaceAccess.WRITE else data,
        env=env,
        network=_network(sandbox),
        shown=(program.directory,),
        granted=tuple(changes),
        own=(data,),
        revealed=tuple(reads),
    )
    jail = find_jail(site)
    try:
        _check(jail, changes, reads)
    except BaseException:
        jail.close()
        raise
    return jail


def _check(jail: Jail, changes: Iterable[str], reads: Iterable[str]) -> None:
    for path in changes:
        if path not in jail.policy.granted and not jail.policy.may_write(os.path.realpath(path)):
            raise JailError(f"{path} does not exist, is a link, or is never opened to programs")
    for path in reads:
        if not jail.policy.may_read(os.path.realpath(path)):
            raise JailError(f"{path} is never shown to programs")


def _network(sandbox: SandboxRequest) -> Network:
    if sandbox.network == ANY_HOST:
        return Network.OPEN
    return Network.PROXIED if sandbox.network else Network.OFF


def _expanded(path: str, home: str) -> str:
    return os.path.normpath(f"{home}/{path.removeprefix('~/')}" if path.startswith("~/") else path)
