"""A new process takes over while calls go on."""

import asyncio
import threading

import psutil
import pytest

from tests.exthost.conftest import run
from zotd.core import supervision
from zotd.core.life import ExtensionState
from zotd.exthost.host import Host

VERSION = """
VERSION = {version!r}
hello()
if VERSION == "bad":
    print("it does not even start", file=sys.stderr, flush=True)
    sys.exit(1)
say({{"type": "register_tool", "name": "only_" + VERSION, "schema": {{}}}})
say({{"type": "ready"}})
def work(frame):
    if frame["args"].get("slow"):
        say({{"type": "notify", "message": "slow"}})
        time.sleep(0.3)
    say(result(frame, content=[{{"type": "text", "text": VERSION}}]))
serve(work)
"""


@pytest.fixture
def x(workshop):
    """Writes a version of the extension x."""

    def write(version, **fields):
        workshop.script("x", VERSION.format(version=version), **fields)

    write("one")
    return write


@pytest.mark.parametrize("how", ["overlap", "replace"])
async def test_a_call_in_flight_ends_in_the_old_process_and_the_next_one_is_the_new_ones(workshop, x, how):
    x("one", reload=how)
    async with workshop.host() as host, asyncio.TaskGroup() as group:
        slow = group.create_task(run(host, "x", slow=True))
        await workshop.heard.until(lambda: workshop.heard.wishes)
        x("two", reload=how)
        reload = group.create_task(host.reload("x"))
        await reload
        assert reload.result() is None
        assert await run(host, "x") == (False, "two")
        assert [tool.spec.name for tool in host.offers.tools()] == ["x", "only_two"]
        assert await slow == (False, "one")


async def test_by_replace_calls_wait_for_the_new_process_and_the_tools_stay(workshop, x):
    x("one", reload="replace")
    async with workshop.host() as host, asyncio.TaskGroup() as group:
        x("two", reload="replace")
        group.create_task(host.reload("x"))
        await workshop.heard.until(lambda: workshop.heard.states[-1] == ("x", "starting", ""))
        assert [tool.spec.name for tool in host.offers.tools()] == ["x", "only_one"]
        assert await run(host, "x") == (False, "two")


async def test_a_new_version_that_fails_leaves_the_old_one(workshop, x):
    async with workshop.host() as host:
        pid = host.status()[0].pid
        x("bad")
        assert await host.reload("x") == "x exited with code 1: it does not even start"
        assert await run(host, "x") == (False, "one")
        assert [tool.spec.name for tool in host.offers.tools()] == ["x", "only_one"]
        assert host.status()[0].pid == pid
        why = "was not reloaded and continues as before: the new process exited with code 1: it does not even start"
        assert (host.status()[0].state, host.status()[0].reason) == (ExtensionState.READY, why)
        assert workshop.heard.states[-1] == ("x", "ready", why)
        assert host.doctor() == [("x", why)]
        x("two")
        assert await host.reload("x") is None
        assert await run(host, "x") == (False, "two")
        assert host.status()[0].reason == ""
        assert workshop.heard.states[-1] == ("x", "ready", "")


@pytest.mark.parametrize(
    ("content", "error"),
    [("{", "malformed JSON: input data was truncated"), ('{"name": "y", "exec": "true"}', "is named y now")],
)
async def test_a_manifest_that_is_broken_leaves_the_old_process(workshop, x, content, error):
    async with workshop.host() as host:
        (workshop.home / "extensions/x/extension.json").write_text(content)
        assert error.lower() in (await host.reload("x") or "").lower()
        assert await run(host, "x") == (False, "one")
        assert await host.reload("nobody") == "there is no extension nobody here"


async def test_calls_without_pause_are_not_lost_in_many_reloads(workshop, x):
    workshop.acting("other")
    reloads, callers, done = 20, 8, False
    answers: list[tuple[bool, str]] = []
    async with workshop.host() as host:

        async def call_on(name: str) -> None:
            while not done:
                answers.append(await run(host, name))

        fds = psutil.Process().num_fds()
        async with asyncio.TaskGroup() as group:
            for number in range(callers):
                group.create_task(call_on("other" if number == 0 else "x"))
            for _ in range(reloads):
                assert await host.reload("x") is None
            done = True
        await workshop.heard.until(lambda: host.status()[1].state is ExtensionState.READY)
        assert {failed for failed, _ in answers} == {False}
        assert len(answers) > reloads * callers
        old = [child for child in psutil.Process().children() if child.pid not in {one.pid for one in host.status()}]
        psutil.wait_procs(old, timeout=0)  # those that still leave are waited for by the fixture
        assert psutil.Process().num_fds() <= fds + 4 * len(old)


async def test_a_host_that_was_stopped_while_a_manifest_was_read_starts_nothing(workshop, x):
    loop, reading, may_go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    may_go_on.set()

    def find():
        loop.call_soon_threadsafe(reading.set)
        may_go_on.wait(10)
        return workshop.find()

    async with workshop.host(find=find) as host, asyncio.TaskGroup() as group:
        may_go_on.clear()
        reading.clear()
        reloads = [group.create_task(host.reload("x")), group.create_task(host.reload_all())]
        await reading.wait()
        await host.stop()
        may_go_on.set()
        assert await reloads[0] == "x was stopped"
        assert (await reloads[1]).loaded == []


# --- reload of all --------------------------------------------------------------------------------------------


async def test_a_reload_of_all_starts_reloads_and_stops(workshop, x):
    workshop.acting("gone")
    workshop.acting("off")
    async with workshop.host() as host:
        x("two")
        workshop.acting("new")
        workshop.acting("off", "good", "off", enabled=False)
        workshop.extension("broken", ["sh"], transport="http")
        (workshop.home / "extensions/gone/extension.json").unlink()
        report = await host.reload_all()
        assert (report.stopped, report.loaded, report.ready) == (["gone", "off"], ["new", "x"], ["new", "x"])
        assert len(report.errors) == 1
        assert "`transport` is reserved for later versions" in report.errors[0]
        assert await run(host, "x") == (False, "two")
        assert await run(host, "new") == (False, "{}")
        assert [one.manifest.name for one in host.status()] == ["new", "x"]
        assert [one.name for one in host.discovered.disabled] == ["off"]


async def test_a_reload_of_all_tells_what_failed_and_keeps_what_works(workshop, x):
    workshop.acting("y")
    async with workshop.host() as host:
        x("bad")
        (workshop.home / "extensions/y/extension.json").write_text("{")
        workshop.extension("z", ["/nowhere"])
        report = await host.reload_all()
        assert (report.stopped, report.ready) == ([], ["x"])
        assert any("y/extension.json: malformed JSON" in error for error in report.errors)
        assert "x exited with code 1: it does not even start" in report.errors
        assert "z could not be started: /nowhere: no such file or directory" in report.errors
        assert await run(host, "x") == (False, "one")
        assert await run(host, "y") == (False, "{}")


async def test_a_host_that_looks_again_while_it_starts_starts_everything_once(workshop, x):
    del x
    host = Host(discover=workshop.find, surroundings=workshop.surroundings(), listener=workshop.heard)
    async with asyncio.TaskGroup() as group:
        group.create_task(host.catch_up())
        group.create_task(host.start())
    assert await host.wait_ready(10) == []
    (one,) = host.status()
    assert [child.pid for child in psutil.Process().children()] == [one.pid]
    await host.stop()


async def test_an_extension_found_again_while_it_stops_is_started_again(workshop, monkeypatch):
    monkeypatch.setattr(supervision, "LEAVE_S", 0.2)
    directory = workshop.acting("stubborn", "stubborn")
    async with workshop.host() as host, asyncio.TaskGroup() as group:
        (directory / "extension.json").rename(directory / "hidden")
        group.create_task(host.reload_all())
        await workshop.heard.until(lambda: workshop.heard.states[-1][:2] == ("stubborn", "stopping"))
        (directory / "hidden").rename(directory / "extension.json")
        assert (await host.reload_all()).errors == []
        assert [one.state for one in host.status()] == [ExtensionState.READY]


async def test_a_reload_that_meets_a_stop_ends(workshop, x):
    async with workshop.host() as host, asyncio.TaskGroup() as group:
        workshop.script("x", "write(b'here I am\\n'); hang()")
        reload = group.create_task(host.reload_all())
        await workshop.heard.until(lambda: workshop.heard.complaints)
        await host.stop()
        report = await reload
    assert (report.ready, report.errors) == ([], ["x was stopped"])
