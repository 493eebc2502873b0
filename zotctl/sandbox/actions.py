"""What `zotctl sandbox show` and `try` do."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path

from zotctl import output
from zotd import config, paths
from zotd.client.errors import ClientError
from zotd.jail import MECHANISMS, Jail, JailError, Mechanism, Network, NetworkOutlet
from zotd.jail.caches import make_caches
from zotd.jail.mechanisms import find_jail
from zotd.jail.repository import set_aside_pointers
from zotd.jail.site import JailSite
from zotd.proxy import AllowList, HostError, parse_rule
from zotd.proxy.default_hosts import DEFAULT_HOSTS
from zotd.proxy.hosts import HostPort
from zotd.proxy.outcomes import ProxyOutcome
from zotd.proxy.rules import HostRule
from zotd.proxy.server import running_proxy
from zotd.proxy.traffic_log import TrafficLog, TrafficRecord, log_path
from zotd.sanitize import one_line

Record = Callable[[TrafficRecord], None]


@dataclass(frozen=True, slots=True)
class SandboxChoice:
    """Which jail is wanted."""

    network: Network
    hosts: tuple[str, ...]
    """Rules of allowed hosts, if the network is proxied."""
    among: tuple[Mechanism, ...]
    """Mechanisms to try."""


def chosen(network: str, allowed: Sequence[str], mechanism: str | None) -> SandboxChoice:
    """Return what the flags and the configuration say; raises ClientError if they are invalid."""
    wanted = Network(network)
    if allowed and wanted is not Network.PROXIED:
        raise ClientError(f"--allow has no effect with --network {one_line(network)}: leave one of them out")
    try:
        settings = config.load(Path(paths.zot_home(os.environ), "config.toml"), os.environ).config.sandbox
    except config.ConfigError as error:
        raise ClientError(str(error)) from error
    hosts = (*(DEFAULT_HOSTS if settings.default_hosts else ()), *settings.hosts, *allowed)
    among = MECHANISMS if mechanism is None else (Mechanism(mechanism),)
    return SandboxChoice(wanted, hosts if wanted is Network.PROXIED else (), among)


def show(choice: SandboxChoice, *, as_json: bool) -> int:
    """Print the policy, and what the mechanism does not keep of it."""
    _rules(choice)
    jail = _found(choice)
    policy = jail.policy
    hidden, sockets = ([path for path in places if os.path.lexists(path)] for places in (policy.hidden, policy.sockets))
    if as_json:
        output.print_json(
            {
                "v": 1,
                "mechanism": jail.mechanism.value,
                "cwd": policy.cwd,
                "network": policy.network.value,
                "hosts": choice.hosts,
                "writable": [*policy.writable, *policy.carved],
                "protected": list(policy.protected),
                "hidden": hidden,
                "sockets": sockets,
                "can_although_it_should_not": jail.limits,
                "cannot_although_it_should": jail.lacks,
            }
        )
        return 0
    print(f"mechanism: {one_line(jail.mechanism)}")
    print(f"network: {one_line(policy.network.value)}")
    _print_list("commands may reach these hosts through the proxy, on ports 80 and 443 if none is named:", choice.hosts)
    _print_list("commands may change:", [*policy.writable, *policy.carved])
    _print_list("and in there not:", policy.protected)
    _print_list("commands may read everything else but:", hidden)
    _print_list("commands may not connect to what listens in:", sockets)
    _print_list(f"{jail.mechanism} does not keep them from all of it; they can:", jail.limits)
    _print_list("and they cannot, though they should:", jail.lacks)
    return 0


def attempt(choice: SandboxChoice, command: Sequence[str]) -> int:
    """Run the command, and return its exit code, or 128 + N after signal N. Then name the hosts that were refused."""
    program = shutil.which(command[0])
    if program is None:
        raise ClientError(f"{one_line(command[0])} was not found on PATH")
    refused: dict[HostPort, str] = {}

    def note(record: TrafficRecord) -> None:
        if record.outcome is ProxyOutcome.REFUSED:
            refused[HostPort(record.host, record.port)] = record.reason

    with suppress(JailError):  # `_run` says it
        make_caches(os.path.realpath(os.getcwd()), os.environ)
    try:
        code = asyncio.run(_run(choice, [os.path.abspath(program), *command[1:]], note))
    except (JailError, OSError) as error:
        raise ClientError(f"the command could not be started: {error}") from error
    for remote, reason in refused.items():
        sys.stderr.write(f"zotctl: {one_line(str(remote))} was refused: {one_line(reason)}\n")
    if refused:
        sys.stderr.write("zotctl: `zotctl sandbox try --allow HOST:PORT` allows a host\n")
    return code if code >= 0 else 128 - code


async def _run(choice: SandboxChoice, argv: Sequence[str], note: Record) -> int:
    """Run it in a session of its own: without this terminal, into which it could otherwise type (TIOCSTI)."""
    jail = _found(choice)
    async with _outlet(choice, note) as outlet:
        sys.stderr.write(
            f"zotctl: in a jail of {one_line(jail.mechanism)}; `zotctl sandbox show` prints what it keeps\n"
        )
        sys.stderr.flush()
        process = jail.start(argv, lambda command: subprocess.Popen(command, start_new_session=True), outlet)  # noqa: S603

        def interrupt() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)

        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
        try:
            return await asyncio.to_thread(process.wait)
        finally:
            for clause in set_aside_pointers(jail.policy):
                sys.stderr.write(f"zotctl: the command may not {one_line(clause)}; the file has another name now\n")


@asynccontextmanager
async def _outlet(choice: SandboxChoice, note: Record) -> AsyncIterator[NetworkOutlet | None]:
    """An outlet to the allowed hosts while the block runs, if the network is proxied."""
    if choice.network is not Network.PROXIED:
        yield None
        return
    rules = _rules(choice)
    with closing(TrafficLog(log_path(paths.zot_home(os.environ)))) as log:

        def record(request: TrafficRecord) -> None:
            log.add(request)
            note(request)

        try:
            async with running_proxy(paths.outlet_dir(os.environ), record) as proxy:
                yield proxy.outlet("zotctl", AllowList(rules))
        except paths.UnsafePathError as error:
            raise ClientError(str(error)) from error


def _rules(choice: SandboxChoice) -> list[HostRule]:
    """Return the rules of allowed hosts; raises ClientError for one that is malformed."""
    try:
        return list(map(parse_rule, choice.hosts))
    except HostError as error:
        raise ClientError(f"an allowed host is malformed: {error}") from error


def _found(choice: SandboxChoice) -> Jail:
    """Return the jail of the working directory; raises ClientError if none is possible."""
    try:
        return find_jail(JailSite(os.path.realpath(os.getcwd()), os.environ, choice.network), choice.among)
    except JailError as error:
        raise ClientError(f"no jail is possible here: {error}") from error


def _print_list(title: str, rows: Sequence[str]) -> None:
    if rows:
        print(one_line(title))
        for row in rows:
            print(f"  {one_line(row)}")
