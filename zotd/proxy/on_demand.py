"""The one proxy of a program that may never need it: it begins with the first outlet, and ends with the program."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import closing

from zotd import paths
from zotd.proxy.rules import HostDecider

TYPE_CHECKING = False  # as `typing` has it: the server is loaded when it starts, which few daemons need
if TYPE_CHECKING:
    from zotd.proxy.ruled_access import RuledAccess
    from zotd.proxy.server import Outlet, ProxyServer
    from zotd.proxy.traffic_log import TrafficLog, TrafficRecord

START_S = 10.0
"""How long the proxy may take to start, in seconds; it takes a millisecond, on a file system that answers."""

log = logging.getLogger(__name__)


class ProxyOnDemand:
    """Gives outlets to jails. Used on one event loop."""

    def __init__(self, folder: str, home: str, spawn: Callable[[str, Coroutine[object, object, None]], None]) -> None:
        """Start nothing yet.

        Args:
            folder: directory for sockets, `zotd.paths.outlet_dir`.
            home: `$ZOT_HOME`, with the log of requests.
            spawn: starts the named task in which the proxy runs, and cancels it when the program ends.
        """
        self._folder = folder
        self._home = home
        self._spawn = spawn
        self._server: asyncio.Future[ProxyServer] | None = None
        """The proxy that runs or starts; None: there is none, or it could not be started."""
        self._traffic: TrafficLog | None = None
        """The log while the proxy runs: two writers would rotate it twice."""

    async def outlet(self, who: str, decider: HostDecider) -> "Outlet":
        """Return an outlet as `ProxyServer.outlet` does; the first one starts the proxy.

        Raises:
            UnsafePathError: the directory for sockets is not as private as it must be. The next call tries again.
            OSError: it cannot be made, or the start takes longer than `START_S`.
        """
        if self._server is None:
            self._server = asyncio.get_running_loop().create_future()
            self._spawn("proxy", self._run(self._server))
        try:
            async with asyncio.timeout(START_S):
                return (await asyncio.shield(self._server)).outlet(who, decider)
        except TimeoutError as error:
            raise OSError(f"it was not ready within {START_S:g} s") from error

    def access(self, who: str, decider: HostDecider) -> "RuledAccess":
        """Return the network for a tool that runs in this process; nothing is started for it. `who` stands in the log."""
        from zotd.proxy.connection import ClientRights  # noqa: PLC0415  (see `TYPE_CHECKING`)
        from zotd.proxy.dialing import resolve_by_system  # noqa: PLC0415
        from zotd.proxy.ruled_access import RuledAccess  # noqa: PLC0415

        return RuledAccess(ClientRights(who, decider, resolve_by_system, self._record))

    def _record(self, record: "TrafficRecord") -> None:
        from zotd.proxy.traffic_log import TrafficLog, log_path  # noqa: PLC0415  (see `TYPE_CHECKING`)

        if self._traffic is not None:
            self._traffic.add(record)
            return
        with closing(TrafficLog(log_path(self._home))) as traffic:
            traffic.add(record)

    async def _run(self, started: "asyncio.Future[ProxyServer]") -> None:
        from zotd.proxy.namespaces import AHEAD, NamespaceStock  # noqa: PLC0415  (see `TYPE_CHECKING`)
        from zotd.proxy.server import running_proxy  # noqa: PLC0415
        from zotd.proxy.traffic_log import TrafficLog, log_path  # noqa: PLC0415

        try:
            with closing(TrafficLog(log_path(self._home))) as traffic:
                self._traffic = traffic
                async with running_proxy(self._folder, traffic.add, namespaces=NamespaceStock(AHEAD)) as server:
                    started.set_result(server)
                    await asyncio.Event().wait()  # until it is cancelled
        except (paths.UnsafePathError, OSError) as error:
            if started.done():
                log.warning("the proxy has ended: %s", error)
            else:
                started.set_exception(error)
        finally:
            self._server = self._traffic = None
            started.cancel()  # else this start would go on without a use
