"""Extensions that outlive their daemon: real daemons, one after the other, whose service manager is this test."""

import asyncio
import json
import os
import shutil
import signal
from contextlib import asynccontextmanager, closing
from itertools import chain

import pytest

from tests.e2e.shop import until_state
from tests.exthost.conftest import run
from tests.faults import adoption
from tests.faults.adoption import Count, town
from tests.faults.row import Options
from tests.process.conftest import who
from zotd.core.ports import ToolOutcome
from zotd.process import OrphanReaper
from zotd.process.census import is_alive
from zotd.process.handover_store import HandoverStore
from zotd.tasks import contained
from zotd.testing.fd_store import FakeStore
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, calls, text
from zotd.wire.content import Text

RESTARTING = "#!/bin/sh\necho '12 zotd-under-test.service restart running'\n"


@pytest.fixture
async def place():
    async with town() as made:
        made.install()
        yield made


async def counted(place):
    async with place.opened():
        return await place.count()


async def begun(place):
    """A daemon that runs, and its counter, which has counted once."""
    place.daemon.start()
    return await counted(place)


async def test_an_extension_outlives_every_kill_of_the_daemon_with_its_pid_and_its_memory():
    row = await adoption.run(Options(seed=0, share=0.15))
    assert row.ok, row.line()


async def test_it_is_not_greeted_again_and_offers_what_it_had_registered(place):
    await begun(place)
    place.crash()
    async with place.opened() as client:
        await place.count()
        found = await client.ask("ext.list", session=place.session)
    assert [(one["name"], one["state"], one["tools"]) for one in found["extensions"]] == [
        ("counter", "ready", ["count", "wait"])
    ]


async def test_one_whose_manifest_has_changed_is_ended_and_started_anew(place, ended):
    first = await begun(place)
    place.install(version="2")
    place.crash()
    again = await counted(place)
    assert again.pid != first.pid
    assert again.number == 1
    await ended(first.pid)
    place.manager.settle()
    assert len(set(place.manager.store.names)) == 2


async def test_one_that_was_removed_meanwhile_is_ended(place, ended):
    first = await begun(place)
    shutil.rmtree(place.daemon.place.home / "extensions" / "counter")
    place.crash()
    async with place.opened():
        await ended(first.pid)
    place.manager.settle()
    assert place.manager.store.names == []


async def test_one_that_has_died_meanwhile_is_started_anew(place, ended):
    first = await begun(place)
    place.daemon.end(signal.SIGKILL)
    os.kill(first.pid, signal.SIGKILL)
    await ended(first.pid)
    place.daemon.start()
    assert (await counted(place)).number == 1


async def test_one_that_was_adopted_and_dies_is_started_anew_and_how_it_ended_is_not_made_up(place):
    first = await begun(place)
    place.crash()
    async with place.opened() as client:
        await client.ask("subscribe", topics=["extensions"])
        await place.count()
        os.kill(first.pid, signal.SIGKILL)
        state: dict[str, object] = {}
        while state.get("state") != "restarting":
            state = (await client.until("ext_state"))[-1]
        assert state["reason"] == "ended"
        await until_state(client, "counter", "ready")
        assert (await place.count()).number == 1


async def test_a_line_that_is_cut_by_the_crash_is_dropped_and_no_fault(place, tmp_path):
    first = await begun(place)
    fifo = tmp_path / "read"
    os.mkfifo(fifo)
    async with place.opened() as client:
        await client.ask("run_command", session=place.session, name="count", args=f"half {fifo}")
        async with asyncio.timeout(60):
            await asyncio.to_thread(fifo.read_bytes)
    place.crash()
    async with place.opened() as client:
        assert await place.count() == Count(first.pid, 3)
        findings = await client.ask("ext.doctor", session=place.session)
    assert findings["findings"] == []


async def test_a_flood_that_the_crash_interrupts_is_read_on(place):
    first = await begun(place)
    async with place.opened() as client:
        await client.ask("run_command", session=place.session, name="count", args="flood")
    place.crash()
    assert await counted(place) == Count(first.pid, 3)


async def test_a_call_interrupted_by_a_crash_gets_no_answer_and_runs_once(place, tmp_path):
    fifo, done = tmp_path / "gate", tmp_path / "gate.done"
    for path in (fifo, done):
        os.mkfifo(path)
    async with ModelServer([calls(CallPart("wait", {"path": str(fifo)})), text("Done.")]) as model:
        place.daemon.start()
        options = {"provider": "openai", "model": "m", "base_url": model.openai_url}
        async with place.opened(**options, secrets={"api_key": "sk-scripted"}) as client:
            await client.ask("prompt", session=place.session, message="go")
            gate = await asyncio.to_thread(os.open, fifo, os.O_WRONLY)  # the call has come to the extension
        place.crash()
        async with place.opened() as client:
            first = await place.count()
            os.close(gate)
            async with asyncio.timeout(60):
                await asyncio.to_thread(done.read_bytes)
            assert await place.count() == Count(first.pid, 3)
            findings = await client.ask("ext.doctor", session=place.session)
    assert first.number == 1
    assert findings["findings"] == []
    assert len(model.requests) == 1


async def test_a_stop_for_good_ends_it_and_leaves_nothing_in_the_store(place, ended):
    first = await begun(place)
    place.daemon.end()
    await ended(first.pid)
    place.manager.settle()
    assert place.manager.store.names == []
    assert list((place.daemon.place.home / "run" / "children").iterdir()) == []


async def test_a_final_stop_also_ends_services_without_sessions(place, ended):
    first = await begun(place)
    place.crash()
    place.daemon.end()
    await ended(first.pid)
    place.manager.settle()
    assert place.manager.store.names == []


async def test_a_restart_by_the_service_manager_leaves_it_to_the_next_daemon(place, monkeypatch):
    bin_ = place.daemon.place.folder / "bin"
    bin_.mkdir()
    (bin_ / "systemctl").write_text(RESTARTING)
    (bin_ / "systemctl").chmod(0o755)
    place.daemon.place.env["PATH"] = f"{bin_}:{os.environ['PATH']}"
    first = await begun(place)
    place.daemon.end()
    assert is_alive(who(first.pid))
    place.daemon.start()
    assert await counted(place) == Count(first.pid, 2)
    (bin_ / "systemctl").unlink()


async def test_another_host_of_the_home_that_starts_meanwhile_leaves_it_alone(place):
    first = await begun(place)
    place.daemon.end(signal.SIGKILL)
    async with asyncio.TaskGroup() as tasks:

        def spawn(name, work):
            _ = contained(tasks, name, work)

        reaper = OrphanReaper(place.daemon.place.home, spawn)
        reaper.sweep(spares_kept=True)
        await reaper.swept.wait()
        await reaper.close()
    place.daemon.start()
    assert await counted(place) == Count(first.pid, 2)


async def test_without_a_store_it_is_ended_and_started_anew(place, tmp_path, ended):
    daemon = place.daemon = DaemonProcess(place.daemon.place.folder)
    with daemon:
        first = await counted(place)
        place.crash()
        again = await counted(place)
        await ended(first.pid)
        daemon.end()
    assert again.pid != first.pid
    assert again.number == 1


async def test_foreign_entries_of_the_descriptor_store_are_released(place):
    forged = os.memfd_create("forged")
    os.write(forged, b' {"version":1,"mark":"0123456789abcdef"}\nready\n')
    for name in ("ext-", "ext-0123456789abcdef", "ext-0123456789abcdef-1", "ext-who knows", "somebody.socket"):
        place.manager.store.put(name, [forged])
    os.close(forged)
    await begun(place)
    place.manager.settle()
    assert {name for name in place.manager.store.names if "0123" in name or "who" in name or name == "ext-"} == set()
    assert "somebody.socket" in place.manager.store.names


ASKING = """
hello(capabilities=["call_tool", "ready"])
say({"type": "ready"})
say({"type": "call_tool", "id": "a", "name": "bash", "session_id": "s_1"})
say({"type": "call_tool", "id": "b", "name": "read", "session_id": "s_1"})
for frame in frames():
    if frame["type"] == "tool_result":
        say({"type": "notify", "level": "info", "message": frame["id"] + ": " + frame["content"][0]["text"]})
"""


SLOW = """
hello()
def work(frame):
    say({"type": "notify", "message": "called"})
    open(frame["args"]["gate"]).close()
    say(result(frame, content=[{"type": "text", "text": "done"}]))
serve(work)
"""

STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
hello()
for line in sys.stdin:
    pass
say({"type": "notify", "message": "nothing more comes"})
"""


@pytest.fixture
def store():
    with closing(FakeStore()) as fake:
        yield fake


def stored(store):
    """Which processes the next daemon would find."""
    found = store.found()
    heads = [os.pread(fd, 4096, 0).split(b"\n")[0] for name, fds in found.items() for fd in fds if name.count("-") == 2]
    for fd in chain.from_iterable(found.values()):
        os.close(fd)
    return [json.loads(head)["pid"] for head in heads]


@pytest.fixture
def life(workshop, store, tmp_path, monkeypatch):
    """`async with life() as host`: the extensions of a daemon that the next one follows."""
    systemctl = tmp_path / "bin" / "systemctl"
    systemctl.parent.mkdir()
    systemctl.write_text(RESTARTING)
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{systemctl.parent}:{os.environ['PATH']}")

    @asynccontextmanager
    async def life(*, is_last=False, wait=True):
        async with asyncio.TaskGroup() as tasks:

            def spawn(name, work):
                _ = contained(tasks, name, work)

            reaper = OrphanReaper(workshop.home, spawn)
            handover_store = HandoverStore(store, reaper, store.found(), unit="zotd-under-test.service", within_s=60)
            async with workshop.host(wait=wait, reaper=reaper, handover_store=handover_store, place="here") as host:
                yield host
                if not is_last:
                    await handover_store.decide()
            handover_store.close()
            await reaper.close()

    return life


async def test_a_tool_that_it_has_asked_for_is_not_waited_for_for_ever(workshop, life):
    workshop.script("asking", ASKING)
    async with life():
        await workshop.heard.until(lambda: len(workshop.heard.requests) == 2)
        workshop.heard.requests[0].answer(ToolOutcome([Text("done")]))
        await workshop.heard.until(lambda: len(workshop.heard.wishes) == 1)
    async with life(is_last=True):
        await workshop.heard.until(lambda: len(workshop.heard.wishes) == 2)
    said = [wish.message for _, _, wish in workshop.heard.wishes]
    assert said == ["a: done", "b: zotd was restarted meanwhile, and the outcome of this call is unknown"]
    assert len(workshop.heard.requests) == 2


MANY = """
hello(capabilities=["ready"])
for number in range(600):
    say({"type": "register_tool", "name": f"t{number}", "description": "x" * 1000, "schema": {}})
for number in range(KEPT, 600):
    say({"type": "unregister", "kind": "tool", "name": f"t{number}"})
say({"type": "subscribe", "events": ["turn_end"], "intercept": ["tool_call"]})
say({"type": "ready"})
for frame in frames():
    pass
"""


@pytest.mark.parametrize("kept", [1, 600])
async def test_what_it_has_registered_and_taken_back_holds_also_when_it_is_a_great_deal(workshop, life, kept):
    workshop.script("many", f"KEPT = {kept}\n{MANY}")
    pids = []
    for is_last in (False, True):
        async with life(is_last=is_last) as host:
            [extension] = host.extensions
            pids.append(extension.serving.process.pid)
            assert set(extension.offered.tools) == {"many", *(f"t{number}" for number in range(kept))}
            assert set(extension.offered.commands) == {"many"}
            assert extension.offered.events == {"turn_start", "turn_end"}
            assert extension.offered.intercepts == {"tool_call"}
    assert pids[0] == pids[1]


async def test_one_that_was_not_ready_yet_is_ended_with_its_daemon(workshop, life, ended):
    workshop.script("slow", "hello(capabilities=['ready'])\nfor frame in frames():\n    say({'type': 'ready'})")
    async with life(wait=False) as host:
        [extension] = host.extensions
        async with asyncio.timeout(60):
            await extension.until(lambda: extension.serving is not None)
        first = extension.serving.process.pid
    await ended(first)


@pytest.mark.parametrize("how", ["overlap", "replace"])
async def test_one_that_a_reload_replaces_leaves_the_store_while_it_still_answers(workshop, life, store, tmp_path, how):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    workshop.script("echo", SLOW, reload=how)
    async with life(is_last=True) as host, asyncio.TaskGroup() as tasks:
        [extension] = host.extensions
        first = extension.serving
        call = tasks.create_task(run(host, "echo", gate=str(gate)))
        await workshop.heard.until(lambda: workshop.heard.wishes)
        reload = tasks.create_task(host.reload("echo"))
        async with asyncio.timeout(60):
            await extension.until(lambda: extension.serving is not first)
        assert first.process.pid not in stored(store)
        assert not call.done()
        gate.open("w").close()  # which it waits for
        assert await call == (False, "done")
        assert await reload is None
        assert stored(store) == [extension.serving.process.pid]


async def test_one_that_is_ended_finds_its_input_at_an_end(workshop, life):
    """Although the store has its other end, too, until somebody takes it out."""
    workshop.script("stubborn", STUBBORN)
    async with life(is_last=True):
        pass
    assert [wish.message for _, _, wish in workshop.heard.wishes] == ["nothing more comes"]


async def test_one_that_a_reload_has_replaced_is_not_left(workshop, life, ended):
    workshop.acting("echo")
    async with life() as host:
        [extension] = host.extensions
        first = extension.serving.process.pid
        assert await host.reload("echo") is None
        second = extension.serving.process.pid
        await ended(first)
    async with life(is_last=True) as host:
        assert next(iter(host.extensions)).serving.process.pid == second
