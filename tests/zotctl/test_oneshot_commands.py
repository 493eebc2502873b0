"""Slash commands of `zot -p` and `zot --json`, in the real daemon."""

import json
import signal

import pytest

PANEL = """
@ext.command("list")
def show_list(args):
    return OpenPanel(Panel("list", "Shopping", ["milk"]))

@ext.command("quiet")
def quiet(args):
    ext.notify("info", "noted " + args)
"""


WAITS = """
import os, threading

@ext.command("wait")
def wait(args):
    open(os.path.join(os.environ["ZOT_HOME"], "waits"), "w")
    threading.Event().wait()
"""


class Desk:
    """A model server, an extension with commands, and `zot` with the flags that lead to them."""

    def __init__(self, live):
        self.live = live
        live.write("echo")
        self.url = live.model("It is done.")

    def flags(self, url=None):
        return "--provider", "openai", "--api-key", "k", "--base-url", url or self.url

    def zot(self, *words, url=None, **options):
        return self.live.zot(*words, *self.flags(url), **options)

    def command(self, name, content):
        file = self.live.home / "commands" / f"{name}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)

    @property
    def prompts(self):
        """What the newest session was asked."""
        with self.live.connect() as connection:
            session = connection.call("session.list", cwd=str(self.live.cwd))["sessions"][0]["id"]
            messages = connection.call("get_messages", session=session)["messages"]
        return [message["content"][0]["text"] for message in messages if message["role"] == "user"]


@pytest.fixture
def desk(live):
    return Desk(live)


def test_a_file_s_text_is_the_prompt_and_what_is_piped_follows_it(desk):
    desk.command("review", "---\ndescription: Reviews.\n---\nReview it.")
    assert desk.zot("-p", "/review", "closely", piped="a diff\n") == (0, "It is done.\n", "")
    assert desk.prompts == ["Review it.\n\nclosely\n\na diff"]


def test_commands_of_extensions_print_what_they_display_or_follow_their_run(desk):
    assert desk.zot("-p", "/shout  hello   world ") == (0, "HELLO   WORLD\n", "")
    assert desk.zot("-p", "/draft a prompt") == (0, "a prompt\n", "")
    assert desk.zot("-p", "/ask", "what is up?") == (0, "It is done.\n", "")
    assert desk.prompts == ["what is up?"]


def test_what_only_resembles_a_command_is_a_prompt(desk):
    for words, message in ("//shout x", "/shout x"), ("/usr/bin is full", "/usr/bin is full"):
        assert desk.zot("-p", words) == (0, "It is done.\n", "")
        assert desk.prompts == [message]
    assert desk.zot("-p", piped="/shout x") == (0, "It is done.\n", "")
    assert desk.prompts == ["/shout x"]


def test_no_approval_is_waited_for_in_the_run_of_a_command(desk):
    desk.command("touch", "Made: !`touch made`")
    assert desk.zot("-p", "--mode", "ask", "/touch") == (0, "It is done.\n", "")
    assert not (desk.live.cwd / "made").exists()


def test_json_prints_the_events_of_the_run_or_the_response(desk):
    code, out, _ = desk.zot("--json", "/ask x")
    kinds = [json.loads(line)["type"] for line in out.splitlines()]
    assert (code, kinds[0], kinds[-1]) == (0, "user_message", "done")
    code, out, _ = desk.zot("--json", "/shout x")
    data = {"action": "display", "extension": "echo", "text": "X"}
    assert (code, json.loads(out)) == (
        0,
        {"type": "response", "command": "run_command", "success": True, "data": data},
    )
    code, out, _ = desk.zot("--json", "/nope")
    assert (code, json.loads(out)["type"]) == (1, "error")


def test_built_in_commands_work_and_leave_an_interrupted_run_to_them(desk):
    hanging = desk.live.scripted(HANGING)
    with desk.live.shell.start("zotd.cli", "--json", "hang", *desk.flags(hanging)) as process:
        while json.loads(process.stdout.readline())["type"] != "text_delta":
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 130
    assert desk.zot("-c", "-p", "/reload-ext")[1].startswith("extensions reloaded: 1 loaded")
    assert desk.zot("-c", "-p", "/clear") == (0, "", "")
    assert desk.prompts == []
    assert "nothing to undo" in desk.zot("-c", "-p", "/undo")[2]


def test_help_lists_the_commands_and_those_of_chats_name_what_to_use_instead(desk):
    desk.command("review", "---\ndescription: Reviews.\nargument-hint: FILE\n---\nReview it.")
    rows = [line.split() for line in desk.zot("-p", "/help")[1].splitlines()]
    assert ["/review", "FILE", "Reviews.", "$ZOT_HOME/commands"] in rows
    assert {"/shout", "/clear"} <= {row[0] for row in rows}
    assert desk.zot("-p", "/model", "x") == (
        1,
        "",
        "zot: /model works only in a chat; use --model NAME, or run: zot --list-models\n",
    )


def test_an_unknown_command_is_an_error_that_says_how_to_send_it(desk):
    code, out, err = desk.zot("-p", "/nope")
    assert (code, out) == (1, "")
    assert "there is no /nope; there are /" in err
    assert err.endswith("; to send it as a prompt, begin it with two slashes\n")


def test_a_panel_needs_a_terminal_and_a_note_is_printed(desk):
    desk.live.write("panels", PANEL)
    code, out, err = desk.zot("-p", "/list")
    assert (code, out) == (1, "")
    assert "needs a terminal: zot --session s_" in err
    assert desk.zot("-p", "/quiet things") == (0, "", "zot: panels: noted things\n")


HANGING = {"steps": [{"type": "text", "deltas": ["I"]}, {"type": "hang"}]}


def test_ctrl_c_aborts_the_run_of_a_command(desk):
    flags = desk.flags(desk.live.scripted(HANGING))
    with desk.live.shell.start("zotd.cli", "--json", "/ask", "for ever", *flags) as process:
        while json.loads(process.stdout.readline())["type"] != "text_delta":
            pass
        process.send_signal(signal.SIGINT)
        rest = [json.loads(line)["type"] for line in process.stdout]
        assert process.wait(40) == 130
    assert rest[-1] == "done"


def test_ctrl_c_leaves_an_extension_that_is_busy_with_a_command(desk):
    desk.live.write("slow", WAITS)
    with desk.live.shell.start("zotd.cli", "-p", "/wait", *desk.flags()) as process:
        while not (desk.live.home / "waits").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 130
