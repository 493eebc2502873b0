"""Forks Python programs for a daemon: owns the template process (`zotd.template.fork_server`) and speaks with its forks.

    fork ──> queue ──> template process ──> a fork, now our child ──> `then(process)`
                └── refused, ended, no answer for ANSWER_S ──────────> `then(None)`: start it cold

Nothing here blocks, and no program waits without limit. A program never runs twice: a fork that gets no `GO` ends.
"""

import asyncio
import logging
import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from enum import Enum

from zotd.process import ChildLedger, spawn
from zotd.process.census import KERNEL
from zotd.process.descent import marked
from zotd.process.service import ForkedProcess
from zotd.process.subreaper import adopts_orphans
from zotd.template import fork_protocol
from zotd.template.client import PASSED
from zotd.template.fork_protocol import COERCED, ForkRequest
from zotd.template.pending_fork import PendingFork
from zotd.template.python_program import PythonProgram, python_program
from zotd.template.thin import INTERPRETER

ANSWER_S = 1.0
"""Longest wait for the next answer of the template process, which takes 3 ms."""

START_S = 1.0
"""Longest wait of an extension for the start of the template process, which takes 0.1 s."""

BRIDGES_START_S = 3.0
"""The same for a bridge, whose modules take 1 s, in every process. The supervisor waits for its hello for 5 s."""

MAX_UNDER_WAY = 16
"""Forks that are under way at the same time; each needs 12 descriptors for a few milliseconds."""

FEW = 3
"""So many programs do not wait for the start of a template process: they start in less time by themselves."""

PAUSES_S = (0.0, 1.0, 10.0, 60.0)
"""Pause before the template process is started again, by the number of those that have failed one after another."""

EXTENSION_MODULES = (
    *("asyncio", "zotd.sdk", "zotd.sdk.loop", "zotd.sdk.hints", "zotd.sdk.written"),
    *("zotd.sdk.modules.program", "zotd.sdk.modules.channels"),
)
BRIDGE = "zotd.bridges.mcp"
BRIDGE_MODULES = (f"{BRIDGE}.bridge", f"{BRIDGE}.bridge_server", "zotd.logs", f"{BRIDGE}.rehearsal")
"""What Python extensions, and bridges to MCP servers, import, so that their forks share it."""

SWITCH = "ZOT_EXTENSION_TEMPLATE"
"""With the value `off` every extension imports its modules itself."""

MAX_REASONS = 100
"""Reasons that are logged, each once."""

Spawn = Callable[[str, Coroutine[object, object, None]], None]
"""Starts a named task; the callee owns it and logs its failure."""

log = logging.getLogger(__name__)

END_S = 2.0
"""Longest wait for the end of a template process; `Child.stop` takes 1 s at most."""


class TemplateState(Enum):
    """What can be expected of the template process."""

    ABSENT = "has not been started"
    STARTING = "is starting"
    LATE = "takes long to start, so that no program waits for it any more"
    SERVING = "serves"
    FAILED = "has failed and is started again later"
    STOPPED = "was stopped"


class ForkTemplate:
    """One template process, started when it is needed, and again when it has ended. Used on one event loop."""

    def __init__(
        self,
        environment: Mapping[str, str],
        modules: Sequence[str],
        spawn_task: Spawn,
        ledger: ChildLedger,
        *,
        start_s: float = START_S,
    ) -> None:
        """Start nothing yet.

        `spawn_task` starts the task that owns the process, which imports `modules`. Programs wait for its start for at
        most `start_s`.
        """
        self.serves = asyncio.Event()
        """Set while it serves."""
        self.state = TemplateState.ABSENT
        self.pid: int | None = None
        """Of the template process, once it was started."""
        self._environment = environment
        self._start_s = start_s
        self._command = (sys.executable, "-c", _CODE, *modules)
        self._spawn_task = spawn_task
        self._ledger = ledger
        self._waiting: deque[PendingFork] = deque()
        self._under_way: dict[PendingFork, None] = {}
        self._control: socket.socket | None = None
        self._failures = 0
        self._reasons: set[str] = set()
        self._over = asyncio.Event()
        """Set when the current template process is of no further use."""
        self._problem = ""
        self._ended = asyncio.Event()
        """No template process runs, and none is recorded."""
        self._ended.set()
        self._loop = asyncio.get_running_loop()
        self._overdue: asyncio.TimerHandle | None = None

    @property
    def problem(self) -> str:
        """Why there is no template process although there should be one; empty if there is one, or none is wanted."""
        return "" if self.state in {TemplateState.SERVING, TemplateState.STOPPED} else self._problem

    def begin(self) -> None:
        """Start the template process, unless there is one; returns at once."""
        # A fork that refuses its program ends as a child that nothing waits for.
        if self.state is TemplateState.ABSENT and adopts_orphans():
            self.state = TemplateState.STARTING
            self._ended.clear()
            self._spawn_task("template of extensions", self._keep())

    def fork(
        self, request: ForkRequest, then: Callable[[ForkedProcess | None], None], *, takes_descriptors: bool = False
    ) -> PendingFork | None:
        """Begin to fork a program; see `Forks.fork`."""
        if self.state not in {TemplateState.ABSENT, TemplateState.STARTING, TemplateState.SERVING}:
            return None
        pending = PendingFork(request, then, takes_descriptors=takes_descriptors)
        self._waiting.append(pending)
        self._loop.call_soon(self._pump)
        return pending

    async def stop(self) -> None:
        """End the template process; programs that it has forked are not its own and keep running.

        Takes as long as `Child.stop`, at most `END_S`. Afterwards the process is no longer recorded.
        """
        self.state = TemplateState.STOPPED
        self._over.set()
        self._give_up()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await self._ended.wait()

    # --- inside -----------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        if self.state is not TemplateState.SERVING:
            self._waiting = deque(one for one in self._waiting if not one.is_over)
            if len(self._waiting) > FEW:
                self.begin()
            if len(self._waiting) <= FEW or self.state is TemplateState.ABSENT:
                self._give_up()
        if self.state is TemplateState.SERVING and self._control is not None:
            while self._waiting and len(self._under_way) < MAX_UNDER_WAY:
                pending = self._waiting.popleft()
                if pending.is_over:
                    continue
                try:
                    pending.send(self._control, self._answered)
                except OSError as error:  # no descriptors are free, or the template process reads nothing
                    self._explain(pending.request.program, str(error))
                    pending.fail()
                else:
                    self._under_way[pending] = None
        self._watch()

    def _answered(self, pending: PendingFork, answer: bytes) -> None:
        self._under_way.pop(pending, None)
        self._watch(anew=True)
        kind, rest = answer[:1], answer[1:]
        if kind == fork_protocol.STARTED:
            self._failures = 0
            (pid,) = fork_protocol.PID.unpack(rest)
            status = KERNEL.status(pid)
            if status is not None and status.parent == os.getpid():
                pending.succeed(pid)
            else:  # it was killed meanwhile
                pending.fail()
        else:
            self._explain(pending.request.program, rest.decode(errors="replace") or "the fork has ended")
            pending.fail()
            if kind == fork_protocol.CHANGED:
                self._replace()
        self._pump()

    def _explain(self, program: PythonProgram, reason: str) -> None:
        if reason not in self._reasons and len(self._reasons) < MAX_REASONS:
            self._reasons.add(reason)
            log.info("%s starts without the template process: %s", " ".join(program.shown)[:200], reason)

    def _watch(self, *, anew: bool = False) -> None:
        """Limit the wait for the next answer as long as one is due."""
        is_due = bool(self._waiting or self._under_way)
        if self._overdue is not None and (anew or not is_due):
            self._overdue.cancel()
            self._overdue = None
        if is_due and self._overdue is None:
            within_s = ANSWER_S if self.state is TemplateState.SERVING else self._start_s
            self._overdue = self._loop.call_later(within_s, self._late, within_s)

    def _late(self, within_s: float) -> None:
        self._overdue = None
        self._problem = f"it did not answer for {within_s:g} s"
        log.warning("the template process of extensions did not answer for %g s; they start without it", within_s)
        if self.state is TemplateState.SERVING:
            self._replace()
        elif self.state is TemplateState.STARTING:
            self.state = TemplateState.LATE
        self._give_up()

    def _replace(self) -> None:
        """End this template process; another one is started."""
        if not self._is_stopped():
            self.state = TemplateState.FAILED
        self.serves.clear()
        self._over.set()

    def _give_up(self) -> None:
        """Have everything that waits start cold."""
        pending = [*self._under_way, *self._waiting]
        self._under_way.clear()
        self._waiting.clear()
        self._watch()
        for one in pending:
            one.fail()

    async def _keep(self) -> None:
        """Keep a template process running until `stop`."""
        try:
            while not self._is_stopped():
                await self._try_one()
                if not self._is_stopped():
                    pause_s = PAUSES_S[min(self._failures, len(PAUSES_S) - 1)]
                    self._failures += 1
                    await self._pause(pause_s)
        finally:
            self._ended.set()

    async def _try_one(self) -> None:
        try:
            await self._run_one()
            reason = "it ends by itself; the daemon's log says why" if self._failures else ""  # the next one may serve
        except OSError as error:
            reason = f"it cannot be started: {error.strerror or error}"
            log.warning("the template process of extensions cannot be started: %s", error)
        self._problem = self._problem or reason

    async def _run_one(self) -> None:
        """Run one template process until it is of no further use."""
        control, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with control:
            with end:
                child = spawn(
                    self._command,
                    cwd="/",
                    env=self._environment,
                    on_output=_said,
                    stdin=end.fileno(),
                    ledger=self._ledger,
                )
            control.setblocking(False)
            async with child, asyncio.TaskGroup() as tasks:
                self.pid = child.pid
                listening = tasks.create_task(self._listen(control))
                await self._over.wait()
                listening.cancel()

    async def _listen(self, control: socket.socket) -> None:
        """Fork programs by this template process as soon as it serves, until it ends."""
        try:
            while await self._loop.sock_recv(control, 1):
                if not self._is_stopped():
                    self.state, self._control = TemplateState.SERVING, control
                    self.serves.set()
                    self._problem = ""
                    self._watch(anew=True)
                    self._pump()
        except OSError as error:
            log.warning("the template process of extensions is lost: %s", error)
        finally:
            self._control = None
            self.serves.clear()
            self._over.set()

    async def _pause(self, pause_s: float) -> None:
        self.state = TemplateState.FAILED
        self._over.clear()
        self._give_up()
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._over.wait()  # only `stop` sets it now
        if not self._is_stopped():
            self.state = TemplateState.STARTING

    def _is_stopped(self) -> bool:
        return self.state is TemplateState.STOPPED


_CODE = (
    # The working directory is no place to import from; but `-P` would be passed on to children of forks.
    "import sys; sys.path.pop(0); k = frozenset(sys.modules); "
    "from zotd.template.fork_server import main; main(sys.argv[1:], k)"
)


class Forks:
    """Python programs of a daemon, forked from its template processes. Used on one event loop."""

    def __init__(self, env: Mapping[str, str], spawn_task: Spawn, ledger: ChildLedger, *, lasts: bool = True) -> None:
        """Start nothing yet.

        Args:
            env: the environment of this process.
            spawn_task: starts the tasks that own the template processes.
            ledger: records them.
            lasts: this process is a daemon, so that a template process is of use later even if few programs start now.
        """
        self._lasts = lasts
        self._is_usable = sys.platform == "linux" and env.get(SWITCH) != "off"
        environment = _environment(env)
        self.extensions = ForkTemplate(environment, EXTENSION_MODULES, spawn_task, ledger)
        # Bridges ignore these variables.
        environment = {name: value for name, value in environment.items() if not name.startswith("PYTHON")}
        self.bridges = ForkTemplate(environment, BRIDGE_MODULES, spawn_task, ledger, start_s=BRIDGES_START_S)

    def begin(self) -> None:
        """Start the template process of extensions, unless there is one; returns at once."""
        if self._is_usable:
            self.extensions.begin()

    def fork(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        is_bound: bool,
        takes_descriptors: bool = False,
        then: Callable[[ForkedProcess | None], None],
    ) -> PendingFork | None:
        """Begin to fork a program; None if it must start cold. Blocks for 0.2 ms.

        Args:
            argv: the command; `argv[0]` is looked up on the PATH of `env`.
            cwd: its working directory.
            env: its whole environment, except for the mark of all children.
            is_bound: the kernel kills the program when this process ends.
            takes_descriptors: its stdin is a socket.
            then: called once, later, with the process or with None if it must start cold after all.
        """
        program = python_program(argv, env) if self._is_usable else None
        if program is None:
            return None
        if program.is_module and program.arguments[0] == BRIDGE:
            template = self.bridges  # not begun for a few: it takes more memory than their own modules
        else:
            template = self.extensions
            if self._lasts:
                template.begin()
        request = ForkRequest(program, cwd, marked(env), is_bound)
        return template.fork(request, then, takes_descriptors=takes_descriptors)

    @property
    def problem(self) -> str:
        """Why extensions start cold although they could be forked, as a sentence; empty: they are forked."""
        why = self.extensions.problem or self.bridges.problem
        return why and f"extensions start slowly, without their template process: {why}"

    async def stop(self) -> None:
        """End the template processes; programs that they have forked are not their own and keep running."""
        async with asyncio.TaskGroup() as tasks:
            for template in (self.extensions, self.bridges):
                tasks.create_task(template.stop())


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the template process: without keys, and with a locale of UTF-8."""
    kept = {name: value for name, value in env.items() if name in PASSED or name.startswith(INTERPRETER)}
    return {**{name: value for name, value in kept.items() if name not in {"LC_ALL", "LANG"}}, "LC_CTYPE": COERCED}


def _said(output: bytes) -> None:
    log.warning("the template process of extensions: %s", output.decode(errors="replace").rstrip()[:2000])
