"""Connects to a host that may be reached: asks, resolves the name once, and connects to an address that was checked.

name ──> may it be reached? ──> its addresses ──> ordinary ones? ──> connect to the first that answers
                                            └──> only special ones: may one of them be reached? ──> connect
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from zotd.proxy.addresses import special_kind
from zotd.proxy.errors import RefusedHostError, UnreachableError
from zotd.proxy.hosts import Address, HostPort, address_of
from zotd.proxy.rules import DECIDE_S, HostDecider, HostQuestion

RESOLVE_S = 10.0
"""How long a name is resolved, in seconds: two attempts of a resolver at its servers."""

CONNECT_S = 10.0
"""How long one address is tried, in seconds."""

MAX_ADDRESSES = 4
"""Most addresses of a name that are tried."""

BUFFER_BYTES = 64 * 1024
"""Limit of what is read ahead from a peer; asyncio reads up to twice as much."""

Resolve = Callable[[str], Awaitable[Sequence[Address]]]
"""Returns the addresses of a name, best first; raises OSError."""


@dataclass(frozen=True, slots=True)
class Dialed:
    """A connection to a host."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    address: Address


async def dial(remote: HostPort, decider: HostDecider, resolve: Resolve) -> Dialed:
    """Connect to `remote`. The caller closes the writer.

    Raises:
        RefusedHostError: it may not be reached, or there was no decision within `DECIDE_S`.
        UnreachableError: it has no address, or none answers.
    """
    await ask(HostQuestion(remote), decider)
    failure = UnreachableError(f"{remote.host} has no address")
    for address in (await addresses(remote, decider, resolve))[:MAX_ADDRESSES]:
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(str(address), remote.port, limit=BUFFER_BYTES)
        except TimeoutError:
            failure = UnreachableError(f"{remote} does not answer within {CONNECT_S:g} s")
        except OSError as error:
            reason = str(error) if error.errno is None else os.strerror(error.errno).lower()
            failure = UnreachableError(f"{remote} cannot be reached: {reason}")
        else:
            return Dialed(reader, writer, address)
    raise failure


async def resolve_by_system(name: str) -> Sequence[Address]:
    """Return the addresses that the system's resolver has for a name."""
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    # Without the name of an interface, which link-local addresses may have: they are refused or allowed without it.
    return [ip_address(str(sockaddr[0]).partition("%")[0]) for *_, sockaddr in found]


async def addresses(remote: HostPort, decider: HostDecider, resolve: Resolve) -> Sequence[Address]:
    """Return where a host can be reached, which may be reached itself: only special addresses are asked about.

    Raises as `dial` does.
    """
    literal = address_of(remote.host)
    if literal is not None:
        return [literal]
    found = await _resolved(remote.host, resolve)
    ordinary = [address for address in found if special_kind(address) is None]
    if ordinary:
        return ordinary  # the others are not asked about: a name that has both is a trick
    for address in found:
        await ask(HostQuestion(HostPort(str(address), remote.port), name=remote.host), decider)
    return found


async def _resolved(name: str, resolve: Resolve) -> Sequence[Address]:
    try:
        async with asyncio.timeout(RESOLVE_S):
            found = await resolve(name)
    except TimeoutError as error:
        raise UnreachableError(f"the address of {name} was not found within {RESOLVE_S:g} s") from error
    except OSError as error:
        raise UnreachableError(f"the address of {name} was not found: {error.strerror}") from error
    # An IPv4 address as IPv6 is one more spelling of it, and the list of rules has only one.
    unmapped = (getattr(address, "ipv4_mapped", None) or address for address in found)
    return list(dict.fromkeys(unmapped))


async def ask(question: HostQuestion, decider: HostDecider) -> None:
    """Return if the host may be reached. Raises RefusedHostError if not, or without a decision within `DECIDE_S`."""
    try:
        async with asyncio.timeout(DECIDE_S):
            decision = await decider.decide(question)
    except TimeoutError as error:
        raise RefusedHostError(f"there was no decision about {question.remote} within {DECIDE_S:g} s") from error
    if not decision.allowed:
        raise RefusedHostError(decision.reason)
