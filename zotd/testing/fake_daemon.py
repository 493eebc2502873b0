"""A daemon without sessions behind it: it speaks `docs/protocol.md` over a real Unix socket, for tests of clients.

In a test, in a thread of its own:

    with running(path) as daemon: ...

As a process, started by clients like the real one: `python -m zotd.testing.fake_daemon --ready-fd N`. `FAKE_START`
in its environment makes it fail: `error` (says why on the pipe), `crash` (on stderr), `silent`.

What a prompt says decides how its run goes; see `fake_sessions.SCRIPTS`. Everything else is echoed.
"""

import argparse
import asyncio
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress

import msgspec

from zotd import ids, paths
from zotd.clock import rfc3339
from zotd.testing import fake_sessions
from zotd.testing.fake_sessions import FakeSession
from zotd.wire import api, batches, events, extensions, version
from zotd.wire.base import ENCODER, BadFrameError, Frozen, convert, decode, encode
from zotd.wire.content import Tokens
from zotd.wire.errors import Code, CommandError
from zotd.wire.framing import CLIENT_LIMIT, Lines, TooLong

READY_S = 20.0
"""How long a test waits for the thread."""

EPOCH = "fake-epoch"

ANSWERS: Mapping[str, Frozen] = {
    "ping": api.Pong(pong=True),
    "get_models": api.Models([api.ModelInfo("fake-1", "fake", 100_000, 8_000, reasoning=False)]),
    "ext.list": extensions.ExtensionList([]),
    "fleet.list": api.FleetList([]),
    "batch.submit": batches.BatchSubmitted(1),
    "batch.results": batches.BatchResults([batches.BatchResult(place=1, number=1, state="done", text="fine")], 0),
}
"""Of commands that are always answered alike."""


class FakeClient(asyncio.Protocol):
    """One client."""

    def __init__(self, daemon: "FakeDaemon") -> None:
        """`daemon` answers it."""
        self._daemon = daemon
        self._lines = Lines(CLIENT_LIMIT)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It has connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._daemon.peers.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has left."""
        del exc
        self._daemon.forget(self)

    def data_received(self, data: bytes) -> None:
        """It has sent something."""
        for line in self._lines.feed(data):
            assert not isinstance(line, TooLong)
            if not self._daemon.wedged:
                self._daemon.answer(self, line)

    def send(self, data: bytes) -> None:
        """Write whole lines."""
        if self._transport is not None:
            self._transport.write(data)

    def cut(self) -> None:
        """Drop the connection at once."""
        if self._transport is not None:
            self._transport.abort()


class FakeDaemon:
    """Answers clients. Public attributes may be changed by tests, from the loop's thread (`do`)."""

    def __init__(self, path: str) -> None:
        """`path`: of the socket, for `daemon.status`."""
        self.path = path
        self.wedged = False
        """Reads everything, answers nothing."""
        self.slow = ""
        """A command that is carried out, and not answered."""
        self.peers: list[FakeClient] = []
        self.sessions: dict[str, FakeSession] = {}
        self.requests: list[dict[str, object]] = []
        """All that came, decoded."""
        self.stopped = asyncio.Event()
        self._accepted: dict[str, api.Started] = {}
        """Answers to prompts, by the ids of their requests."""
        self._answered: list[str] = []
        self._came = threading.Condition()
        self._loop = asyncio.get_running_loop()

    def do(self, work: Callable[[], object]) -> None:
        """Run `work` in the daemon's thread and wait for it."""
        done = threading.Event()

        def work_and_tell() -> None:  # in one call: `work` may end the loop
            work()
            done.set()

        self._loop.call_soon_threadsafe(work_and_tell)
        assert done.wait(READY_S)

    def wait_for(self, command: str, count: int = 1) -> None:
        """Wait, in the test's thread, until so many of these commands have been answered."""
        with self._came:
            assert self._came.wait_for(lambda: self._answered.count(command) >= count, READY_S), f"no {command} came"

    def cut_all(self) -> None:
        """Drop all connections."""
        for peer in list(self.peers):
            peer.cut()

    def forget(self, peer: FakeClient) -> None:
        """It is gone, and its ephemeral sessions with it."""
        self.peers.remove(peer)
        for session in list(self.sessions.values()):
            if peer in session.followers:
                session.followers.remove(peer)
                if session.info.ephemeral and not session.followers:
                    del self.sessions[session.id]

    def answer(self, peer: FakeClient, line: bytes) -> None:
        """Carry out one request."""
        request = decode(line, dict[str, object])
        self.requests.append(request)
        command = str(request.get("type"))
        after: list[Callable[[], None]] = []
        head: dict[str, object] = {"type": "response", "command": command}
        if request.get("id") is not None:
            head["id"] = request["id"]
        try:
            data = self._carry_out(peer, command, request, after)
        except (CommandError, BadFrameError) as error:
            code = error.code if isinstance(error, CommandError) else Code.BAD_REQUEST
            peer.send(encode({**head, "success": False, "error": str(error), "code": code}) + b"\n")
            return
        if command != self.slow:
            peer.send(encode({**head, "success": True, **({} if data is None else {"data": data})}) + b"\n")
        for work in after:  # a response precedes the events it causes
            work()
        with self._came:
            self._answered.append(command)
            self._came.notify_all()

    def _carry_out(
        self, peer: FakeClient, command: str, request: dict[str, object], after: list[Callable[[], None]]
    ) -> Frozen | None:
        if command not in api.BY_NAME:
            raise CommandError(Code.BAD_REQUEST, "unknown command")
        params = convert(request, api.BY_NAME[command].params)
        match params:
            case api.Hello(role=role):
                return api.HelloResult(
                    version.PROTOCOL,
                    version.VERSION,
                    epoch=EPOCH,
                    connection="k_1",
                    pid=os.getpid(),
                    role=role or "approve",
                )
            case api.SessionCreate():
                return self._create(params)
            case api.SessionList():
                return self._list(params)
            case api.Attach():
                return self._attach(peer, params, after)
            case api.Prompt():
                return self._prompt(params, after)
            case api.RunCommand(session=name, name="compact"):
                return api.CommandResult("prompt", run=self._compact(self._find(name), after))
            case _:
                return self._others(command, params, after)

    def _others(self, command: str, params: Frozen, after: list[Callable[[], None]]) -> Frozen | None:
        match command, params:
            case _ if command in ANSWERS:
                return ANSWERS[command]
            case "daemon.status", _:
                return api.Status(
                    1, "running", self.path, os.getpid(), version.VERSION, version.PROTOCOL, EPOCH,
                    1.5, len(self.sessions), 0, len(self.peers), 0, [],
                )  # fmt: skip
            case "daemon.shutdown", api.Shutdown():
                after.append(self.stopped.set)
                return None
            case "subscribe" | "clear", _:
                return None
            case "run_command", api.RunCommand(name=name):
                raise CommandError(Code.NOT_FOUND, f"there is no /{name}")
            case _, api.OfSession(session=name):
                return self._of_session(command, params, self._find(name), after)
            case _:
                raise CommandError(Code.UNSUPPORTED, f"`{command}` comes later")

    def _of_session(
        self, command: str, params: api.OfSession, session: FakeSession, after: list[Callable[[], None]]
    ) -> Frozen | None:
        match command, params:
            case "session.get", _:
                return session.info
            case "abort", _:
                after.append(lambda: fake_sessions.abort(session))
                return None
            case "session.close", _:
                self.sessions.pop(session.id)
                return None
            case "queue.withdraw", api.QueueWithdraw(input=key):
                session.queue = [item for item in session.queue if item[0] != key]
                after.append(lambda: fake_sessions.show_queue(session))
                return None
            case "set_model" | "session.configure", api.SetModel(model=model) | api.SessionConfigure(model=str(model)):
                session.info = msgspec.structs.replace(session.info, model=model)
                return api.ModelName(model) if command == "set_model" else session.info
            case "compact", _:
                return api.Started(started=True, run=self._compact(session, after))
            case _:
                return _details(command, params, session)

    def _find(self, name: str) -> FakeSession:
        if name not in self.sessions:
            raise CommandError(Code.NOT_FOUND, f"there is no session {name}")
        return self.sessions[name]

    def _create(self, params: api.SessionCreate) -> api.Created:
        now = rfc3339()
        info = api.SessionInfo(
            id=ids.new("s"),
            name=params.name or "",
            cwd=params.cwd,
            provider=params.provider or "fake",
            model=params.model or "fake-1",
            reasoning="off",
            mode=params.mode or "workspace",
            state="idle",
            created=now,
            updated=now,
            ephemeral=params.ephemeral,
        )
        self.sessions[info.id] = FakeSession(info, params, dict(params.env or {}))
        return api.Created(info, 0, EPOCH)

    def _list(self, params: api.SessionList) -> api.Sessions:
        found = [s.info for s in self.sessions.values() if params.cwd in {None, s.info.cwd}]
        found.reverse()
        start = int(params.cursor or 0)
        end = start + params.limit
        return api.Sessions(found[start:end], str(end) if end < len(found) else None)

    def _attach(self, peer: FakeClient, params: api.Attach, after: list[Callable[[], None]]) -> api.Attached:
        session = self._find(params.session)
        session.env = params.env or session.env
        last = len(session.committed)
        resumed = params.after is not None and params.after.epoch == EPOCH and params.after.seq <= last
        missed = session.committed[params.after.seq :] if params.after and resumed else []

        def follow() -> None:
            complete = events.ReplayComplete(session=session.id, seq=last)
            peer.send(ENCODER.encode_lines([*missed, complete]))

        if peer not in session.followers:
            session.followers.append(peer)
        after.append(follow)
        return api.Attached(
            "resumed" if resumed else "snapshot", session.info, last, EPOCH, Tokens(),
            [], [], [], [], [], None, fake_sessions.messages(session)[-params.limit :], has_more=False,
        )  # fmt: skip

    def _prompt(self, params: api.Prompt, after: list[Callable[[], None]]) -> api.Started:
        if params.request_id is None:
            return self._accept(params, after)
        if params.request_id not in self._accepted:
            self._accepted[params.request_id] = self._accept(params, after)
        return self._accepted[params.request_id]

    def _accept(self, params: api.Prompt, after: list[Callable[[], None]]) -> api.Started:
        session = self._find(params.session)
        key = ids.new("i")
        if session.running is None:
            run = ids.new("r")
            after.append(lambda: fake_sessions.run(session, key, run, params.message))
            return api.Started(started=True, input=key, run=run)
        if params.when_busy == "reject":
            raise CommandError(Code.BUSY, "the session is busy")
        session.queue.append((key, params.message))
        after.append(lambda: fake_sessions.show_queue(session))
        return api.Started(started=False, input=key, position=len(session.queue))

    def _compact(self, session: FakeSession, after: list[Callable[[], None]]) -> str:
        run = ids.new("r")
        after.append(lambda: session.show(events.CompactDone("all of it"), events.Done(run=run)))
        return run


def _details(command: str, params: api.OfSession, session: FakeSession) -> Frozen:
    match command, params:
        case "get_state", _:
            return api.State("fake", "fake-1", session.info.cwd, 0, session.running is not None, Tokens(1, 2))
        case "get_messages", _:
            return api.Messages(fake_sessions.messages(session))
        case "session.configure", _:
            return session.info
        case "complete", _:
            return api.Completions([])
        case "session.export", api.Export(after=at):
            return api.Exported("first page\n", next=1) if at == 0 else api.Exported("second page\n")
        case _:
            raise CommandError(Code.UNSUPPORTED, f"`{command}` comes later")


# --- starting -------------------------------------------------------------------------------------------------------


async def serve(path: str, started: Callable[[FakeDaemon], None]) -> None:
    """Serve until `daemon.shutdown`, or until `stopped` is set."""
    daemon = FakeDaemon(path)
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(path)
        listener.listen()
        loop = asyncio.get_running_loop()
        server = await loop.create_unix_server(lambda: FakeClient(daemon), sock=listener)
        started(daemon)
        await daemon.stopped.wait()
        # asyncio accepts in tasks of its own, the only others here. One that goes on after the server was closed, or is
        # cancelled before its first step, leaves its connection open.
        loop.remove_reader(listener)
        if accepting := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(accepting, timeout=READY_S)
        server.close()
        daemon.cut_all()
        await server.wait_closed()
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108  (a str, as everywhere here)


@contextmanager
def running(path: str) -> Iterator[FakeDaemon]:
    """A daemon in a thread, for the time of a `with`."""
    ready = threading.Event()
    found: list[FakeDaemon] = []

    def started(daemon: FakeDaemon) -> None:
        found.append(daemon)
        ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(serve(path, started)))
    thread.start()
    assert ready.wait(READY_S), "the fake daemon did not start"
    try:
        yield found[0]
    finally:
        with suppress(RuntimeError):  # it has ended by itself
            found[0].do(found[0].stopped.set)
        thread.join()


def main() -> None:
    """Run as a process that a client has started."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--autostarted", action="store_true")
    parser.add_argument("--ready-fd", type=int, required=True)
    ready_fd = parser.parse_args().ready_fd
    match os.environ.get("FAKE_START"):
        case "error":
            os.write(ready_fd, b"error the database is from a newer version\n")
            sys.exit(1)
        case "crash":
            sys.exit("RuntimeError: the disk is full")
        case "silent":
            sys.exit(1)
        case _:
            pass

    def started(_: FakeDaemon) -> None:
        os.write(ready_fd, b"ready %d\n" % os.getpid())
        os.close(ready_fd)

    asyncio.run(serve(paths.socket_path(os.environ), started))


if __name__ == "__main__":
    main()
