"""Extensions that fail, outside the terminal client: `zot -p` and `zot --json` against the real daemon."""

import json

import pytest


def settings(url):
    return ["--provider", "openai", "--api-key", "k", "--base-url", url]


def notices(out):
    return [line["text"] for line in map(json.loads, out.splitlines()) if line["type"] == "notice"]


@pytest.fixture
def crashy(live):
    return str(live.write("crashy", "import sys\nsys.exit('boom')", into=live.cwd))


CRASHED = "crashy exited with code 1: boom; its log: zotctl ext logs crashy"


def test_an_extension_that_crashes_is_told_on_stderr_and_the_answer_stands(live, crashy):
    flags = settings(live.model("hello"))
    assert live.zot("-p", "-e", crashy, "hi", *flags) == (0, "hello\n", f"zot: {CRASHED}\n")


def test_an_extension_that_crashes_is_a_notice_in_json(live, crashy):
    code, out, err = live.zot("--json", "-e", crashy, "hi", *settings(live.model("hello")))
    assert (code, notices(out), err) == (0, [CRASHED], "")


def test_an_extension_that_crashes_in_a_call_is_told_on_stderr(live):
    body = "import os\n@ext.tool\ndef leave() -> str:\n    'Leaves.'\n    os._exit(3)"
    fragile = str(live.write("fragile", body, into=live.cwd))
    call = {"steps": [{"type": "call", "name": "leave", "args": {}}]}
    url = live.scripted(call, {"steps": [{"type": "text", "deltas": ["it left"]}]})
    code, out, err = live.zot("-p", "-e", fragile, "hi", *settings(url))
    assert (code, out) == (0, "it left\n")
    assert "zot: fragile exited with code 3\n" in err


def test_a_crash_is_not_explained_with_the_output_of_an_earlier_call(live):
    body = """
    import os, sys

    @ext.tool
    def warn() -> str:
        "Warns."
        print("an earlier warning", file=sys.stderr, flush=True)
        return "ok"

    @ext.tool
    def leave() -> str:
        "Leaves."
        os._exit(3)
    """
    fragile = str(live.write("fragile", body, into=live.cwd))
    warn = {"steps": [{"type": "call", "name": "warn", "args": {}}]}
    leave = {"steps": [{"type": "call", "name": "leave", "args": {}}]}
    url = live.scripted(warn, leave, {"steps": [{"type": "text", "deltas": ["it left"]}]})
    code, out, err = live.zot("-p", "-e", fragile, "hi", *settings(url))
    assert (code, out) == (0, "it left\n")
    assert "zot: fragile exited with code 3\n" in err


def test_an_extension_that_says_no_hello_is_named_while_the_run_waits_for_it(live):
    silent = str(live.write("silent", "import time\ntime.sleep(100)", into=live.cwd))
    code, out, err = live.zot("-p", "-e", silent, "hi", *settings(live.model("hello")))
    assert (code, out) == (0, "hello\n")
    assert err.splitlines() == [
        "zot: waiting up to 3 s for extensions that have not said hello: silent",
        "zot: silent has not said hello yet; the run continues without it",
    ]


@pytest.mark.parametrize("mode", ["-p", "--json"])
def test_an_extension_that_is_not_there_is_refused_before_anything_runs(live, mode):
    code, out, err = live.zot(mode, "-e", "./nowhere", "hi", *settings(live.model("hello")))
    sentence = f"{live.cwd}/nowhere/extension.json cannot be read: no such file or directory"
    assert (code, err) == (2, f"zot: {sentence}\n")
    assert [json.loads(line) for line in out.splitlines()] == (
        [{"type": "error", "message": sentence}] if mode == "--json" else []
    )
    with live.connect() as connection:
        assert connection.call("session.list")["sessions"] == []
