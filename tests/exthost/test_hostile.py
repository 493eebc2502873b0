"""Extensions that misbehave, each beside a good one: the host lives, the good one answers, and the reason reads well."""

import asyncio

import psutil
import pytest

from tests.exthost.conftest import ABOUT, run
from zotd.core.life import ExtensionState
from zotd.exthost.guards import GuardedCall
from zotd.exthost.host import ExtensionTimeouts, Host
from zotd.testing import hostile
from zotd.testing.misbehaviours import MISBEHAVIOURS, PROGRAM, Misbehaviour, Probe
from zotd.wire import ext

IMPATIENT = ExtensionTimeouts(tool_s=1.0, command_s=1.0, intercept_s=0.2)

EVENT = ext.Event(event="turn_start", step=1, text="x" * 10_000)


async def good_one_answers(host):
    """A call beside the bad one; it may take what a busy machine takes, but no timeout of somebody else."""
    async with asyncio.timeout(0.9):
        assert await run(host, "good", city="Berlin") == (False, '{"city": "Berlin"}')


def can_be_probed(host, bad: Misbehaviour) -> bool:
    match bad.probe:
        case Probe.COMMAND:
            return any(command.name == bad.name for command in host.offers.commands())
        case Probe.GUARD:
            return bad.name in host.guards.of("tool_call")
        case Probe.CALL | Probe.EVENTS:
            return any(tool.spec.name == bad.name for tool in host.offers.tools())
        case Probe.NONE:
            return True


async def probe(host: Host, bad: Misbehaviour) -> str:
    """Bring its fault to light; what the caller is told."""
    match bad.probe:
        case Probe.CALL:
            return (await run(host, bad.name, city="Berlin"))[1]
        case Probe.COMMAND:
            _, response = await host.offers.invoke(bad.name, "", about=ABOUT, client=None)
            return response.error
        case Probe.GUARD:
            verdict = await host.guards.tool_call(ABOUT, GuardedCall("c_1", "bash"), {"command": "ls"})
            assert not verdict.is_blocked
            assert verdict.value == {"command": "ls"}
            return "".join(note.text for note in verdict.notes)
        case Probe.EVENTS:
            for _ in range(300):
                host.send(bad.name, EVENT)
            return ""
        case Probe.NONE:
            return ""


@pytest.mark.parametrize("bad", MISBEHAVIOURS, ids=lambda bad: bad.id)
async def test_a_bad_extension_harms_only_itself(workshop, bad):
    workshop.acting("good")
    workshop.extension(bad.name, bad.argv)
    heard = workshop.heard
    async with workshop.host(wait=False, limits=IMPATIENT) as host:

        def is_told() -> bool:
            """Somewhere where people look."""
            reasons = [(name, reason) for name, _, reason in heard.states]
            said = reasons if bad.is_fatal else [*heard.complaints, *host.doctor()]
            return any(name == bad.name and bad.told in sentence for name, sentence in said)

        await heard.until(lambda: ("good", "ready", "") in heard.states)
        await heard.until(lambda: can_be_probed(host, bad))
        told = await probe(host, bad)
        await good_one_answers(host)
        if bad.is_fatal or bad.told not in told:
            if not bad.is_fatal:
                await probe(host, bad)  # what it says too much about the first time is read before the second answer
            await heard.until(is_told)
        await good_one_answers(host)


async def test_all_of_them_at_once(workshop, ended):
    workshop.acting("good")
    bad_ones = [bad for bad in MISBEHAVIOURS if bad.probe is not Probe.GUARD]
    for bad in bad_ones:
        workshop.extension(bad.name, bad.argv)
    async with workshop.host(wait=False, limits=IMPATIENT) as host:
        await workshop.heard.until(lambda: ("good", "ready", "") in workshop.heard.states)
        for bad in bad_ones:
            if can_be_probed(host, bad):
                await probe(host, bad)
        assert await run(host, "good", city="Berlin") == (False, '{"city": "Berlin"}')
        states = {one.manifest.name: one.state for one in host.status()}
        assert states["good"] is ExtensionState.READY
        assert len(states) == len(bad_ones) + 1
        pids = [child.pid for child in psutil.Process().children(recursive=True)]
        started = asyncio.get_running_loop().time()
    took = asyncio.get_running_loop().time() - started
    assert took < 3.3 + 2.0, "they are stopped side by side, however many are stubborn"
    for pid in pids:
        await ended(pid)  # it was killed; a grandchild's end nobody here has waited for


def test_the_table_is_complete():
    assert len(MISBEHAVIOURS) >= 25
    assert len({bad.id for bad in MISBEHAVIOURS}) == len(MISBEHAVIOURS)
    acted = {bad.id for bad in MISBEHAVIOURS if PROGRAM in bad.argv}
    tables = {*hostile.BEGINNINGS, *hostile.ANSWERS}
    assert tables < acted
    assert all(hasattr(hostile, name.replace(" ", "_")) for name in acted - tables)
