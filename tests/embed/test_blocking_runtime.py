"""`BlockingRuntime` with a model in another process."""

import _thread
import json
import os
import subprocess
import sys
import threading

import pytest

from zotd.embed.blocking_runtime import BlockingRuntime
from zotd.embed.session_runtime import BusyError
from zotd.testing.live_daemon import place as place_in
from zotd.wire import events
from zotd.wire.errors import CommandError


@pytest.fixture
def place(tmp_path):
    return place_in(tmp_path)


@pytest.fixture
def opened(place):
    """`opened(reply, ...)`: arguments for a runtime whose model sends these replies."""
    started = []

    def opened(*replies):
        script = place.folder / "script.json"
        script.write_text(json.dumps(replies))
        command = [sys.executable, "-m", "zotd.testing.model_server", str(script)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, env=place.env)
        started.append(server)
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["openai_url"]
        options = {"cwd": str(place.cwd), "provider": "openai", "base_url": url, "api_key": "sk-x"}
        return {"options": options, "env": place.env}

    yield opened
    for server in started:
        server.kill()
        server.communicate()


def says(text):
    return {"steps": [{"type": "text", "deltas": [text]}]}


HANGS = {"steps": [{"type": "text", "deltas": ["a"]}, {"type": "hang"}]}


def test_a_prompt_is_an_iterator_of_its_events(opened):
    with BlockingRuntime(**opened(says("hi"), says("Summary."))) as runtime:
        found = list(runtime.prompt("go"))
        assert isinstance(found[-1], events.Done)
        assert "".join(event.delta for event in found if isinstance(event, events.TextDelta)) == "hi"
        assert (runtime.state, len(runtime.messages), runtime.usage.output) == ("idle", 2, 5)
        assert [type(event) for event in runtime.compact()] == [events.CompactDone, events.Done]
        runtime.set_model("gpt-5")
        assert "gpt-5" in [known.id for known in runtime.models]


def test_another_thread_aborts(opened):
    with BlockingRuntime(**opened(HANGS, says("later"))) as runtime:
        stops = []
        for event in runtime.prompt("go"):
            if isinstance(event, events.TextDelta):
                threading.Thread(target=runtime.abort).start()
            if isinstance(event, events.TurnEnd):
                stops.append(event.stop)
        assert stops == ["aborted"]
        assert isinstance(list(runtime.prompt("go on"))[-1], events.Done)


def test_leaving_the_loop_early_aborts_the_run(opened):
    with BlockingRuntime(**opened(HANGS, says("later"))) as runtime:
        running = runtime.prompt("go")
        while not isinstance(next(running), events.TextDelta):
            pass
        with pytest.raises(BusyError):
            next(runtime.prompt("too early"))
        running.close()
        assert runtime.state == "idle"
        assert isinstance(list(runtime.prompt("go on"))[-1], events.Done)


def test_ctrl_c_aborts_the_run(opened, place):
    """Sent by a tool that never ends, when the main thread only waits for it."""
    os.mkfifo(place.cwd / "go")
    interrupts = {"type": "call", "name": "bash", "args": {"command": f"kill -INT {os.getpid()}; cat go"}}
    with BlockingRuntime(**opened({"steps": [interrupts]}, says("later"))) as runtime:
        with pytest.raises(KeyboardInterrupt):
            list(runtime.prompt("go"))
        assert runtime.state == "idle"
        assert isinstance(list(runtime.prompt("go on"))[-1], events.Done)


def test_ctrl_c_that_does_not_end_the_wait_is_noticed(opened):
    """As one that arrives right before the wait begins: `interrupt_main` sets the mark of a signal and interrupts nothing."""
    begins, main = threading.Event(), threading.get_ident()

    def interrupt():
        begins.wait()
        while sys._current_frames()[main].f_code.co_name != "wait":
            pass
        _thread.interrupt_main()

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with BlockingRuntime(**opened(HANGS)) as runtime:
        running = runtime.prompt("go")
        while not isinstance(next(running), events.TextDelta):
            pass
        begins.set()
        with pytest.raises(KeyboardInterrupt):
            next(running)
        interrupting.join()
        assert runtime.state == "idle"


def test_several_runtimes_run_concurrently_and_can_be_closed_twice(opened):
    given = opened(HANGS, HANGS)
    one, other = BlockingRuntime(**given), BlockingRuntime(**given)
    runs = [runtime.prompt("go") for runtime in (one, other)]
    assert [isinstance(next(run), events.UserMessage) for run in runs] == [True, True]
    for runtime, run in zip((one, other), runs, strict=True):
        run.close()
        runtime.close()
        runtime.close()


def test_invalid_options_are_reported_when_the_runtime_is_opened(opened):
    given = opened()
    given["options"]["provider"] = "nobody"
    with pytest.raises(CommandError, match="unknown provider"):
        BlockingRuntime(**given)
