"""The host program of `tools/*.py`."""

import json
from pathlib import Path

import pytest

from zotd.testing.ext_driver import text_of

GREET = """
    async def run(name: str, times: int = 1) -> str:
        '''Greet somebody.'''
        return "{word} " * times + name
    """


def greet(word):
    return GREET.replace("{word}", word)


def by_name(registrations):
    return {frame["name"]: frame for frame in registrations if frame["type"] == "register_tool"}


def null_bytes():
    """What Python calls the error: it differs between patch versions."""
    try:
        compile("\0", "bad.py", "exec")
    except (SyntaxError, ValueError) as error:
        return type(error).__name__


def errors(registrations):
    return {Path(f["file"]).name: f["error"] for f in registrations if f["type"] == "module_error"}


def test_a_file_is_a_tool(write, modules):
    write("tools/greet.py", greet("hello"))
    write("tools/_helper.py", "raise RuntimeError('not a tool')")
    write("tools/notes.txt", "not a tool")

    driver = modules()

    assert driver.registrations == [
        {
            "type": "register_tool",
            "name": "greet",
            "description": "Greet somebody.",
            "schema": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "times": {"type": "integer", "default": 1}},
                "required": ["name"],
            },
        }
    ]
    answer = driver.expect("tool_result", id=driver.request("tool_call", name="greet", args={"name": "you"}))
    assert text_of(answer) == "hello you"
    assert driver.shut_down() == 0


def test_all_kinds_of_run_and_result_are_served(write, modules):
    write("tools/plain.py", "def run(): return {'ä': 1}")
    write("tools/nothing.py", "async def run(): pass")
    write("tools/image.py", "def run(): return b'GIF89a...'")
    write("tools/wrong.py", "async def run(): raise ValueError('no such city')")
    write("tools/phone.py", "def run(call): return call")
    driver = modules()

    assert text_of(driver.call_tool("plain")) == '{"ä": 1}'
    assert driver.call_tool("nothing")["content"] == [{"type": "text", "text": ""}]
    assert driver.call_tool("image")["content"] == [{"type": "image", "mime_type": "image/gif", "data": "R0lGODlhLi4u"}]
    wrong = driver.call_tool("wrong")
    assert (text_of(wrong), wrong["is_error"]) == ("no such city", True)
    assert "ValueError: no such city" in driver.log()
    assert text_of(driver.call_tool("phone", call="me")) == "me"


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("def run(:", "SyntaxError: invalid syntax (line 1)"),
        ("x = 1\nimport missing_library", "ModuleNotFoundError: No module named 'missing_library' (line 2)"),
        ("x = 1", "bad.py defines no function run(): a tool is a file with `async def run(…)`"),
        ("run = 3", "bad.py defines no function run(): a tool is a file with `async def run(…)`"),
        (
            "def run(*args): pass",
            "bad.py: run() takes *args or **kwargs, but a tool's parameters must each have a name",
        ),
        ("import sys\nsys.exit(3)", "SystemExit: 3 (line 2)"),
        ("\0", f"{null_bytes()}: source code string cannot contain null bytes"),
    ],
)
def test_a_file_that_is_no_tool_is_named_and_costs_no_other(write, modules, source, error):
    write("tools/bad.py", source)
    write("tools/greet.py", greet("hello"))

    driver = modules()

    assert errors(driver.registrations) == {"bad.py": error}
    assert by_name(driver.registrations).keys() == {"greet"}


def test_a_hint_that_is_not_supported_is_told_at_once_and_accepts_anything(write, modules):
    write("tools/odd.py", "def run(x: complex, y: 'Misspelt') -> str:\n    'Odd.'\n    return repr([x, y])\n")

    driver = modules()

    (frame,) = driver.registrations
    assert frame["undescribed"] == {"x": "complex", "y": "Misspelt"}
    lines = driver.log().splitlines()
    assert [line.partition(", which")[0] for line in lines] == [
        "odd.py: parameter x has the hint complex",
        "odd.py: parameter y has the hint Misspelt",
    ]
    assert all("hints are str, int, " in line and line.endswith("; the model may send anything") for line in lines)
    assert text_of(driver.call_tool("odd", x=[1], y=None)) == "[[1], None]"


def test_a_saved_file_is_served_anew_and_the_others_keep_their_state(write, modules):
    write("tools/greet.py", greet("hello"))
    write("tools/counter.py", "n = 0\ndef run():\n    global n\n    n += 1\n    return n")
    driver = modules()
    assert text_of(driver.call_tool("counter")) == "1"

    for word in ("hallo", "salut", "hello"):  # of one length, within one second: what bytecode caches go by
        write("tools/greet.py", greet(word))
        driver.expect("register_tool", name="greet")
        call_id = driver.request("tool_call", name="greet", args={"name": "you"})
        assert text_of(driver.expect("tool_result", id=call_id)) == f"{word} you"

    assert text_of(driver.call_tool("counter")) == "2"
    driver.shut_down()
    assert by_name(driver.rest()) == {}


def test_while_a_file_is_broken_its_old_version_serves(write, modules, tmp_path):
    path = write("tools/greet.py", greet("hello"))
    driver = modules()

    write("tools/greet.py", "def run(")
    assert driver.expect("module_error") == {
        "type": "module_error",
        "file": str(path),
        "error": "SyntaxError: '(' was never closed (line 1)",
    }
    call_id = driver.request("tool_call", name="greet", args={"name": "you"})
    assert text_of(driver.expect("tool_result", id=call_id)) == "hello you"

    write("tools/greet.py", greet("mended"))
    driver.expect("register_tool", name="greet")
    assert driver.expect("module_error") == {"type": "module_error", "file": str(path), "error": ""}
    call_id = driver.request("tool_call", name="greet", args={"name": "you"})
    assert text_of(driver.expect("tool_result", id=call_id)) == "mended you"


def test_a_call_in_flight_ends_with_the_version_it_began_with(write, modules):
    write(
        "tools/wait.py",
        "import pathlib, time\ndef run():\n    pathlib.Path('started').touch()\n"
        "    while not pathlib.Path('go').exists():\n        time.sleep(0.01)\n    return WORD\nWORD = 'old'",
    )
    driver = modules()
    call_id = driver.request("tool_call", name="wait", args={})

    write("tools/wait.py", "def run(): return 'new'")
    driver.expect("register_tool", name="wait")
    assert text_of(driver.call_tool("wait")) == "new"
    write("go", "")

    assert text_of(driver.expect("tool_result", id=call_id)) == "old"


def test_files_and_directories_come_and_go(write, modules, tmp_path):
    driver = modules()
    assert driver.registrations == []

    path = write("tools/greet.py", greet("hello"))
    driver.expect("register_tool", name="greet")

    path.unlink()
    assert driver.expect("unregister") == {"type": "unregister", "kind": "tool", "name": "greet"}
    assert driver.call_tool("greet")["is_error"] is True

    write("tools/bad.py", "x = 1").rename(tmp_path / "tools" / "worse.py")
    driver.expect("module_error", file=str(tmp_path / "tools" / "worse.py"))
    (tmp_path / "tools").rename(tmp_path / "away")
    driver.expect("module_error", file=str(tmp_path / "tools" / "worse.py"), error="")

    write("tools/greet.py", greet("again"))
    driver.expect("register_tool", name="greet")


def test_the_first_directory_that_has_a_name_wins(write, modules, tmp_path):
    write("project/tools/greet.py", greet("project"))
    write("global/tools/greet.py", greet("global"))
    write("global/tools/other.py", greet("other"))
    driver = modules(tmp_path / "project", tmp_path / "global")

    def say():
        call_id = driver.request("tool_call", name="greet", args={"name": "you"})
        return text_of(driver.expect("tool_result", id=call_id))

    assert [frame["name"] for frame in driver.registrations] == ["greet", "other"]
    assert say() == "project you"

    (tmp_path / "project" / "tools" / "greet.py").unlink()
    driver.expect("register_tool", name="greet")
    assert say() == "global you"


def test_a_tool_may_be_called_like_a_module_of_the_library_and_import_its_helper(write, modules):
    write("tools/json.py", "from _words import WORD\nasync def run(): return {'word': WORD}")
    write("tools/_words.py", "WORD = 'one'")
    write("tools/watch.py", "import json\nasync def run(): return json.dumps([1])")
    driver = modules()
    assert json.loads(text_of(driver.call_tool("json"))) == {"word": "one"}
    assert text_of(driver.call_tool("watch")) == "[1]"

    write("tools/_words.py", "WORD = 'another'")
    write("tools/json.py", "from _words import WORD\nasync def run(): return WORD.upper()")
    driver.expect("register_tool", name="json")

    assert text_of(driver.call_tool("json")) == "ANOTHER"


def test_a_tool_may_import_the_sdk_wherever_the_program_was_started_from(write, modules):
    write("tools/sdk.py", "from zotd.sdk import Result\ndef run(): return Result('told', is_error=True)")

    assert modules().call_tool("sdk")["is_error"] is True


def test_a_file_whose_import_hangs_holds_up_the_others_for_a_while_only(write, modules):
    write("tools/hang.py", "import threading\nthreading.Event().wait()")
    write("tools/other.py", greet("hello"))

    driver = modules()

    assert errors(driver.registrations) == {"hang.py": "its import has not ended after 5 s"}
    assert by_name(driver.registrations).keys() == {"other"}
    write("tools/hang.py", "def run(): return 'mended'")
    driver.expect("register_tool", name="hang")
    driver.expect("module_error", error="")
