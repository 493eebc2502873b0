"""Each example does what it says, as a real process."""

import json
import socket
import sys

import pytest

from tests.examples.conftest import ROOT
from zotd.testing.ext_driver import ExtensionDriver, text_of
from zotd.wire import ext as wire

PROGRAMS = ["hello", "hello-py", "clock", "weather", "guard", "scratchpad", "todo"]


def offered(driver):
    return {frame.get("name") for frame in driver.registrations if "name" in frame}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_starts_and_ends_as_the_protocol_wants(launch, node, name):
    driver = launch(name, node)
    driver.send("hello_ack", protocol_version=1)
    driver.send("a_frame_of_a_newer_host", id="x")

    code = driver.shut_down()

    frames = driver.rest()
    assert code == 0
    assert driver.log() in {"", "ignored a frame of the unknown type 'a_frame_of_a_newer_host' from the host\n"}
    assert frames[0]["type"] == "hello"
    assert frames[0]["name"] == name
    assert "ready" in [frame["type"] for frame in frames]
    assert frames[-1] == {"type": "shutdown_ack"}
    assert not [frame for frame in frames if isinstance(wire.read(json.dumps(frame).encode()), wire.Skipped)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_ends_with_its_input(launch, node, name):
    driver = launch(name, node)

    driver.close_stdin()

    assert driver.end() == 0
    assert driver.rest()[0]["type"] == "hello"


@pytest.mark.parametrize(("name", "command"), [("hello", "hello"), ("hello-py", "hellopy")])
def test_hello_has_the_model_greet_somebody(start, name, command):
    driver = start(name)

    answer = driver.run_command(command, 'Ada "the first"')

    assert answer["action"] == "prompt"
    assert answer["prompt"].startswith('Greet Ada "the first" ')
    assert driver.run_command(command)["prompt"].startswith("Greet me ")


def test_the_clock_tells_the_time_to_people_and_to_the_model(start):
    driver = start("clock")

    assert offered(driver) == {"clock", "time_in"}
    assert driver.run_command("clock", "Europe/Berlin")["action"] == "display"
    assert "Invalid time zone" in driver.run_command("clock", "Atlantis")["error"]
    assert text_of(driver.call_tool("time_in", zone="Asia/Tokyo"))
    assert driver.call_tool("time_in", zone="Atlantis")["is_error"] is True
    driver.send("event", event="turn_end", stop="end_turn")
    assert driver.expect("set_status")["key"] == "clock"


def test_the_weather_is_the_same_each_time(start):
    driver = start("weather")

    assert text_of(driver.call_tool("weather", city="Berlin")) == "Berlin: 16 °C, fog"
    assert text_of(driver.call_tool("weather", city="Berlin", unit="fahrenheit")) == "Berlin: 60 °F, fog"
    assert driver.call_tool("weather", city="Ys")["content"] == driver.call_tool("weather", city="Ys")["content"]
    assert driver.call_tool("weather", city="Berlin", unit="kelvin")["is_error"] is True
    assert driver.run_command("weather", "Oslo")["prompt"] == "What is the weather in Oslo? One line."
    assert driver.run_command("weather")["error"].startswith("which city?")


def test_the_guard_refuses_rm_rf_and_writes_everything_down(start, tmp_path):
    driver = start("guard")

    def ask(tool, **args):
        return driver.intercept("tool_call", tool_id="t", tool_name=tool, tool_args=args).get("block", False)

    commands = ["rm -rf /tmp/x", "cd x && rm -fr .", "rm -r -f x", "rm --recursive --force x"]
    assert [ask("bash", command=command) for command in commands] == [True] * 4
    harmless = ["rm file", "rm -r dir", "ls", "echo form"]
    assert [ask("bash", command=command) for command in harmless] == [False] * 4
    assert ask("read", path="rm -rf") is False

    lines = [json.loads(line) for line in (tmp_path / "data" / "audit.jsonl").read_text().splitlines()]
    assert [line["verdict"] for line in lines] == ["refused"] * 4 + ["allowed"] * 5
    assert lines[0]["args"] == {"command": "rm -rf /tmp/x"}
    assert driver.expect("notify")["message"] == "refused: rm -rf /tmp/x"


def test_the_guard_refuses_what_it_cannot_write_down(start, tmp_path):
    driver = start("guard")
    (tmp_path / "data").rmdir()

    answer = driver.intercept("tool_call", tool_id="t", tool_name="bash", tool_args={"command": "ls"})

    assert answer["block"] is True
    assert answer["reason"].startswith("guard could not decide")


def test_the_scratchpad_is_written_by_people_and_read_by_the_model(start, node):
    driver = start("scratchpad", node)

    assert text_of(driver.call_tool("read_notes")) == "no notes"
    assert driver.run_command("note", "buy milk")["display"] == "noted (1 so far)"
    assert driver.run_command("note", "call Ada")["display"] == "noted (2 so far)"
    assert driver.run_command("note")["error"] == "nothing to note: /note TEXT"
    assert text_of(driver.call_tool("read_notes")) == "buy milk\ncall Ada"
    assert text_of(driver.call_tool("read_notes", containing="Ada")) == "call Ada"


def test_the_list_of_things_to_do_is_worked_with_keys_and_survives(start, tmp_path):
    driver = start("todo")
    assert driver.run_command("todo", "first")["open_panel"]["lines"] == ["> [ ] first"]
    assert text_of(driver.call_tool("add_todo", text="second")) == "added; the list has 2 entries"
    assert driver.expect("panel_render")["lines"] == ["> [ ] first", "  [ ] second"]

    def press(key, typed=""):
        driver.send("panel_key", panel_id="todo", key=key, text=typed)
        return driver.expect("panel_render")["lines"]

    assert press("down") == ["  [ ] first", "> [ ] second"]
    assert press("down") == ["  [ ] first", "> [ ] second"]
    assert press("enter") == ["  [ ] first", "> [x] second"]
    assert press("rune", " ") == ["  [ ] first", "> [ ] second"]
    assert press("enter") == ["  [ ] first", "> [x] second"]
    assert press("up") == ["> [ ] first", "  [x] second"]
    assert press("rune", "d") == ["> [x] second"]
    driver.send("panel_key", panel_id="todo", key="esc")
    driver.expect("panel_close", panel_id="todo")
    assert json.loads((tmp_path / "data" / "todo.json").read_text()) == [{"text": "second", "done": True}]


def test_the_list_of_things_to_do_is_read_again_at_the_start(start, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "todo.json").write_text('[{"text": "old", "done": false}]')

    assert start("todo").run_command("todo")["open_panel"]["lines"] == ["> [ ] old"]


def test_the_tool_in_one_file_counts(modules, tmp_path):
    (tmp_path / "text.txt").write_text("one two\nthree\n")
    driver = modules()

    assert offered(driver) == {"word_count"}
    counted = text_of(driver.call_tool("word_count", path="text.txt"))
    assert json.loads(counted) == {"path": "text.txt", "words": 3}
    assert '"lines": 2' in text_of(driver.call_tool("word_count", path="text.txt", unit="lines"))
    assert "No such file" in text_of(driver.call_tool("word_count", path="absent"))


def test_the_channel_in_one_file_talks_through_a_socket(modules, tmp_path):
    path = str(tmp_path / "chat.sock")
    driver = modules("--channel", "local_socket", ZOT_CHAT_SOCKET=path)
    driver.expect("channel_state", state="connected")

    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(path)
        client.sendall("größe\n".encode())
        message = driver.expect("channel_message")
        assert message["text"] == "größe"
        driver.send(
            "channel_send", id="1", channel="local_socket", sender=message["sender"], text="two\nlines", metadata={}
        )
        assert driver.expect("channel_sent") == {"type": "channel_sent", "id": "1"}
        assert client.recv(100) == b"two lines\n"
    driver.send("channel_send", id="2", channel="local_socket", sender="client-9", text="nobody")
    assert driver.expect("channel_sent") == {"type": "channel_sent", "id": "2"}


def test_the_review_is_a_command_and_a_guard_in_one_file():
    file = ROOT / "examples" / "extensions" / "review.py"
    with ExtensionDriver([sys.executable, str(file)], cwd=file.parent) as driver:
        driver.greet()

        def pushed(command):
            answer = driver.intercept("tool_call", tool_id="t", tool_name="bash", tool_args={"command": command})
            args = answer.get("modified_args")
            return args["command"] if isinstance(args, dict) else None

        assert str(driver.run_command("review", "a.py")["prompt"]).startswith("Review a.py. ")
        assert pushed("git push --force origin main") == "git push --force-with-lease origin main"
        assert pushed("git push --force-with-lease") is None
        assert pushed("make --force") is None
