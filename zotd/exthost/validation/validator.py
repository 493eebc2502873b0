"""Runs a validation: one process for registrations and answers, then one for each disturbance."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from zotd import paths
from zotd.core.supervision import LEAVE_S, QUIET_S, READY_S
from zotd.exthost.calls import ExtensionCallError
from zotd.exthost.contributions import Registrations
from zotd.exthost.host import ExtensionTimeouts
from zotd.exthost.jails import ExtensionJails
from zotd.exthost.log import ExtensionLog
from zotd.exthost.manifest import Manifest, ManifestError
from zotd.exthost.surroundings import Surroundings
from zotd.exthost.validation import questions
from zotd.exthost.validation.calling import Calling, ExpectedAnswer, about_everything, about_guards, about_one
from zotd.exthost.validation.conversation import ProbedProcess
from zotd.exthost.validation.departure import depart
from zotd.exthost.validation.registering import command_faults, subscription_faults, tool_faults
from zotd.exthost.validation.report import FindingCollector, StoppedError, ValidationReport
from zotd.exthost.validation.subject import find_subject
from zotd.wire import ext
from zotd.wire.version import VERSION

GIVEN_UP_AFTER_S = 0.01
"""Time before a call is cancelled: long enough to begin the call, too short for most to finish it."""

AT_ONCE = 4
"""Number of questions asked in parallel, each of them twice; a busy model does not ask more."""

NOTHING: questions.Fields = {}

STDERR_BYTES = 4096
"""Longest excerpt of stderr in the report."""


async def validate(
    path: Path,
    *,
    env: Mapping[str, str],
    cwd: str,
    calling: Calling | None = None,
    limits: ExtensionTimeouts | None = None,
) -> ValidationReport:
    """Check the extension or the Python modules at `path`. Takes some seconds, and 2 s more if it does not end.

    Writes nothing to `$ZOT_HOME`: data and log go to a temporary directory. All processes are ended afterwards.

    Args:
        path: what to check; see `find_subject`.
        env: environment of the processes.
        cwd: working directory that the extension is told.
        calling: which tools and commands may be called; None: none.
        limits: time limits of answers.
    """
    findings = FindingCollector()
    try:
        manifest = find_subject(path, cwd=Path(cwd))
    except ManifestError as error:
        findings.broken("manifest", str(error))
        return ValidationReport("", findings.all(), "")
    findings.kept("manifest", f"{manifest.name} is started with: {' '.join(manifest.argv)}")
    # A home of its own, so that a validation can run beside the installed extension and leaves nothing behind.
    with TemporaryDirectory(prefix="zot-validate-") as home:
        # Without a proxy, so that a validation reaches no host. Its jails are awaited, so it starts no task for them.
        jails = ExtensionJails(_no_task, places={"ZOT_HOME": paths.zot_home(env)}, proxy=None)
        surroundings = Surroundings(cwd, Path(home), env, version=VERSION, jails=jails)
        validation = _Validation(
            manifest=manifest,
            surroundings=surroundings,
            findings=findings,
            calling=calling,
            limits=limits or ExtensionTimeouts(),
        )
        with suppress(StoppedError):
            await validation.run()
        return ValidationReport(manifest.name, findings.all(), validation.stderr())


def _no_task(name: str, work: Coroutine[object, object, None]) -> None:
    work.close()
    raise AssertionError(f"{name}: a validation awaits its jails")


@dataclass(frozen=True, slots=True)
class _Upset:
    """A disturbance that an extension has to survive."""

    rule: str
    extra: questions.Fields
    """Fields added to every frame."""
    frames: Sequence[questions.Fields] = ()
    cancelled: ExpectedAnswer | None = None
    """A call that is cancelled."""


class _Validation:
    def __init__(
        self,
        *,
        manifest: Manifest,
        surroundings: Surroundings,
        findings: FindingCollector,
        calling: Calling | None,
        limits: ExtensionTimeouts,
    ) -> None:
        self._manifest = manifest
        self._surroundings = surroundings
        self._found = findings
        self._calling = calling
        self._limits = limits
        self._log = ExtensionLog(surroundings.home / "logs" / f"ext-{manifest.name}.log")
        self._complaints: list[str] = []
        self._answered: list[ExpectedAnswer] = []
        """Questions that it has answered once, so that it must be able to answer them again."""
        self._ending = ""
        """How its process ends without a disturbance; empty if it has to be killed."""

    async def run(self) -> None:
        """Check all rules."""
        # A disturbance that ends the process is recorded, and the next one gets a new process.
        for upset in await self._get_to_know():
            with suppress(StoppedError):
                await self._upset(upset)
        departure = await depart(self._manifest, self._surroundings)
        if not departure.exit:
            self._found.broken("end of input", f"it was still there {LEAVE_S:g} s after the end of its stdin")
        else:
            self._found.kept("end of input", f"it {departure.exit}")
            left = [f"it left a process behind, which zot kills: {command}" for command in departure.left]
            self._found.judge("children", left)

    def stderr(self) -> str:
        """Return the end of the stderr of all processes."""
        if not self._log.path.exists():
            return ""
        return self._log.path.read_bytes()[-STDERR_BYTES:].decode(errors="replace")

    # --- the first process ------------------------------------------------------------------------------------

    async def _get_to_know(self) -> list[_Upset]:
        """Check everything that needs no disturbance; return the disturbances to try next."""
        async with self._conversation("start") as talk:
            self._found.kept("start")
            await self._meet(talk)
            self._judge_registrations(talk)
            await self._question(talk)
            await self._end(talk)
        if self._answered:
            stray = f"it sent {talk.dropped} answers that nothing had asked for, or that were given before"
            self._found.judge("answers", [stray] if talk.dropped else [])
        else:
            self._found.unchecked("answers", "nothing was asked")
        return self._upsets(talk)

    async def _meet(self, talk: ProbedProcess) -> None:
        found, started = self._found, time.monotonic()
        with found.under("hello"):
            name = await talk.greet()
        found.kept("hello", f"it sent hello after {_milliseconds_since(started)} ms")
        # The host uses the name of the manifest everywhere, so another one in hello is only misleading.
        wanted = self._manifest.name
        other = [f'it calls itself "{name[:80]}" in its hello, but the manifest says "{wanted}", which is used']
        found.judge("name", other if name != wanted else [])
        with found.under("ready"):
            is_settled = await talk.settle()
        if talk.has_said_ready:
            found.kept("ready", f"it was ready after {_milliseconds_since(started)} ms")
        elif is_settled:
            found.unchecked(
                "ready", f"it never sends `ready`; {QUIET_S * 1000:.0f} ms without a frame count as `ready`"
            )
        else:
            found.broken("ready", f"it neither sent `ready` nor paused within {READY_S:g} s")
            raise StoppedError  # every further process would have to be waited for too
        with found.under("stays", "when it was ready, it"):
            await talk.stay()
        found.kept("stays")

    def _judge_registrations(self, talk: ProbedProcess) -> None:
        registered, refused = talk.registrations, talk.refused
        self._judge_names("tools", tool_faults(registered, refused, talk.module_errors), registered.tools)
        self._judge_hints(registered)
        commands = [f"/{name}" for name in registered.commands]
        self._judge_names("commands", command_faults(registered, refused), commands)
        events = sorted(registered.events | registered.intercepts)
        self._judge_names("subscriptions", subscription_faults(registered, refused), events)

    def _judge_hints(self, registered: Registrations) -> None:
        doubts = registered.doubts()
        if doubts:
            self._found.doubtful("hints", doubts)
        elif registered.tools:
            self._found.kept("hints")
        else:
            self._found.unchecked("hints", "it has no tools")

    def _judge_names(self, rule: str, faults: Iterable[str], names: Iterable[str]) -> None:
        told, listed = list(faults), ", ".join(names)
        if told or listed:
            self._found.judge(rule, told, listed)
        else:
            self._found.unchecked(rule, "it has none")

    async def _question(self, talk: ProbedProcess) -> None:
        guards = about_guards(talk.registrations, self._limits, self._surroundings.cwd)
        if guards:
            await self._put("guards", talk, guards)
        else:
            self._found.unchecked("guards", "it intercepts nothing")
        await self._call(talk)
        if not self._answered:
            self._found.unchecked("at once", "nothing was asked")
            return
        async with asyncio.TaskGroup() as group:
            # Each twice, so that two calls of the same tool overlap: globals shared between calls show up.
            asked = [group.create_task(question.put(talk)) for question in self._answered[:AT_ONCE] * 2]
        faults = [fault for fault in (task.result() for task in asked) if fault]
        self._found.judge("at once", faults, f"it answered {len(asked)} questions")

    async def _call(self, talk: ProbedProcess) -> None:
        calling, registered = self._calling, talk.registrations
        if not registered.tools and not registered.commands:
            self._found.unchecked("calls", "there is nothing to call")
        elif calling is None:
            self._found.unchecked("calls", "not checked, for they may do real work; --call allows it")
        elif not calling.tool:
            await self._put("calls", talk, about_everything(registered, self._limits))
        elif calling.tool in registered.tools:
            await self._put("calls", talk, [about_one(calling, self._limits)])
        else:
            there = ", ".join(registered.tools) or "none"
            self._found.broken("calls", f'it has no tool "{calling.tool}"; its tools: {there}')

    async def _put(self, rule: str, talk: ProbedProcess, asked: Sequence[ExpectedAnswer]) -> None:
        """Ask one question after another and judge the answers under `rule`."""
        told = [(question, await question.put(talk)) for question in asked]
        self._answered += [question for question, fault in told if fault is None]
        about = "; ".join(question.about for question in asked)
        self._found.judge(rule, [fault for _, fault in told if fault], about)

    async def _end(self, talk: ProbedProcess) -> None:
        if talk.exit:
            self._found.unchecked("shutdown", f"not checked: before it, it {talk.exit}")
            return
        ending = await talk.leave()
        # Without the quoted stderr, which may differ between processes.
        self._ending = _kind(ending)
        if not ending:
            late = f"it was still there {LEAVE_S:g} s after `shutdown`; zot then sends SIGTERM to its group"
            self._found.broken("shutdown", late)
        elif ending.startswith("was ended"):
            self._found.broken("shutdown", f"it {ending}")
        else:
            self._found.kept("shutdown", f"it {ending}")

    # --- the others -------------------------------------------------------------------------------------------

    def _upsets(self, talk: ProbedProcess) -> list[_Upset]:
        cwd, events = self._surroundings.cwd, talk.registrations.events
        newer = {"type": "of_a_newer_zot", "id": "1"}
        upsets = [
            _Upset("unknown", questions.NEWER, [newer]),
            _Upset("unicode", questions.SEPARATORS),
        ]
        told = [questions.event(name, cwd) for name in questions.EVENTS if name in events]
        if told:
            upsets.append(_Upset("events", NOTHING, told))
        else:
            self._found.unchecked("events", "it subscribes to none")
        if talk.can("tool_cancel"):
            call = next((question for question in self._answered if question.kind is ext.ToolResult), None)
            stale = {"type": "tool_cancel", "id": "ended"}
            upsets.append(_Upset("cancel", NOTHING, [stale], call))
        else:
            self._found.unchecked("cancel", "it did not announce it")
        return upsets

    async def _upset(self, upset: _Upset) -> None:
        async with self._conversation(upset.rule, upset.extra) as talk:
            await talk.greet()
            await talk.settle()
            for frame in upset.frames:
                talk.send(frame)
            if upset.cancelled is not None:
                await _cancel(talk, upset.cancelled)
            # After the disturbance it still has to answer everything that it could answer before.
            answers = [await question.put(talk) for question in self._answered]
            await talk.stay()
            ending = await talk.leave() if self._ending else ""
        faults = [fault for fault in answers if fault]
        # Compared with its normal end: an extension that never ends by itself is reported under `shutdown` only.
        if _kind(ending) != self._ending:
            faults.append(f"it {ending or 'did not end afterwards'}")
        self._found.judge(upset.rule, faults)

    # --- all of them ------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _conversation(self, rule: str, extra: questions.Fields = NOTHING) -> AsyncIterator[ProbedProcess]:
        """Start a separate process. Its unexpected end is a fault of `rule`, unless a narrower rule applies."""
        talk = ProbedProcess(self._manifest, self._surroundings, self._log, extra)
        try:
            with self._found.under(rule):
                async with talk:
                    yield talk
        finally:
            # Even if the process has died: what it printed before is often the reason.
            self._judge_output(talk)

    def _judge_output(self, talk: ProbedProcess) -> None:
        """Judge the output of a process after all of it was read."""
        # A program that was never started has printed nothing that could be judged.
        if not self._found.is_kept("start"):
            return
        self._complaints += talk.complaints
        for rule, begin in (("stdout", "wrote"), ("frames", "sent")):
            faults = [f"it {complaint}" for complaint in self._complaints if complaint.startswith(begin)]
            self._found.judge(rule, faults)


async def _cancel(talk: ProbedProcess, call: ExpectedAnswer) -> None:
    """Ask a question and cancel it at once, which sends `tool_cancel`."""
    with suppress(ExtensionCallError):
        await talk.ask(call.kind, call.frame, GIVEN_UP_AFTER_S)


def _kind(ending: str) -> str:
    """Return how a process ended, without the quoted stderr."""
    return ending.partition(":")[0]


def _milliseconds_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
