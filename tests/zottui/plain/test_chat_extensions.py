"""The plain chat with extensions, on a real terminal, in the real daemon."""

import pytest

from tests.zottui.plain.terminal import chat

SHOW = """
@ext.tool
def shout(text: str) -> str:
    "Says it loudly."
    return text.upper()

@ext.tool
def fail() -> str:
    "Fails."
    raise ArgumentError("out of luck")

@ext.command("shout")
def shout_command(args):
    return Display(args.upper())

@ext.command("draft")
def draft(args):
    return Insert(args)

@ext.command("ask")
def ask(args):
    return Prompt(args)

@ext.command("note")
def note(args):
    level, _, words = args.partition(" ")
    ext.notify(level, words)

@ext.command("status")
def status(args):
    for words in args.split(","):
        ext.set_status("mood", words)

@ext.command("list")
def show_list(args):
    return OpenPanel(Panel("list", "Shopping", ["milk", args], footer="esc closes"))

@ext.command("help")
def help_(args):
    return Display("never asked")

@ext.command("wait")
def wait(args):
    import threading
    threading.Event().wait()
"""


@pytest.fixture
def show(live):
    live.write("show", SHOW)


def talk(live, *flags, url="http://127.0.0.1:9", **variables):
    env = live.shell.env | {"NO_COLOR": "1"} | variables
    return chat(live.cwd, *flags, "--provider", "openai", "--api-key", "k", "--base-url", url, env=env)


def test_a_command_of_an_extension_answers_once(live, show):
    with talk(live) as terminal:
        terminal.until("> ")
        terminal.type("/shout hello\n")
        assert terminal.until("> ") == "/shout hello\nHELLO\n"
        terminal.type("/shout again \x1b[2J\n")
        assert terminal.until("> ").endswith("\nAGAIN ^[[2J\n")


def test_a_command_may_start_a_run(live, show):
    with talk(live, url=live.model("It is done.")) as terminal:
        terminal.until("> ")
        terminal.type("/ask What is up?\n")
        assert terminal.until("It is done.\n") == "/ask What is up?\nyou: What is up?\nzot: "


def test_a_suggestion_is_sent_by_an_empty_line_and_dropped_by_another_one(live, show):
    with talk(live, url=live.model("It is done.")) as terminal:
        terminal.until("> ")
        terminal.type("/draft Say more\n")
        terminal.until("(suggested) Say more\n(Enter sends it, typing another line discards it)\n> ")
        terminal.type("\n")
        assert terminal.until("It is done.\n> ") == "\nzot: "
        terminal.type("/draft /shout x\n")
        terminal.until("> ")
        terminal.type("/shout y\n")
        assert terminal.until("> ") == "/shout y\nY\n"
        terminal.type("\n")
        assert terminal.until("> ") == "\n"


def test_an_unknown_command_is_answered_with_those_there_are(live, show):
    with talk(live) as terminal:
        terminal.until("> ")
        terminal.type("/nope\n")
        answer = terminal.until("> ")
        assert answer.startswith("/nope\nerror: there is no /nope")
        assert "/shout" in answer


def test_help_lists_what_extensions_bring(live, show):
    with talk(live) as terminal:
        terminal.until("> ")
        terminal.type("/shout\n")  # it is ready when this is answered
        terminal.until("> ")
        terminal.type("/help\n")
        lines = terminal.until("> ").splitlines()
        assert "/shout       from show" in lines
        assert "/show:help   from show" in lines
        assert "/reload-ext  restart the extensions, or one: /reload-ext NAME" in lines


def test_help_lists_commands_that_are_files(live):
    (live.home / "commands").mkdir()
    (live.home / "commands" / "fix.md").write_text("---\ndescription: Fixes it.\nargument-hint: NUMBER\n---\nFix $1.")
    with talk(live) as terminal:
        terminal.until("> ")
        terminal.type("/help\n")
        lines = terminal.until("> ").splitlines()
        assert "/fix NUMBER  Fixes it. (from $ZOT_HOME/commands)" in lines
        assert "/undo        takes back what the last run has changed in files; --keep, --force" in lines


@pytest.mark.parametrize(
    ("level", "plain", "painted"),
    [
        ("info", "show: well", "\x1b[36mshow: well\x1b[0m"),
        ("success", "show: well", "\x1b[32mshow: well\x1b[0m"),
        ("warn", "show (warn): well", "\x1b[33mshow (warn): well\x1b[0m"),
        ("error", "show (error): well", "\x1b[31mshow (error): well\x1b[0m"),
    ],
)
def test_a_note_tells_whose_it_is_and_how_grave(live, show, level, plain, painted):
    with talk(live) as terminal:
        terminal.until("> ")
        terminal.type(f"/note {level} well\n")
        terminal.until(f"\n{plain}\n")
    with talk(live, NO_COLOR="") as terminal:
        terminal.until("> ")
        terminal.type(f"/note {level} well\n")
        terminal.until(f"\n{painted}\n")
    with talk(live, "--no-color", NO_COLOR="") as terminal:
        terminal.until("> ")
        terminal.type(f"/note {level} well\n")
        terminal.until(f"\n{plain}\n")


def test_a_tool_s_line_names_its_extension(live, show):
    call = {"steps": [{"type": "call", "name": "shout", "args": {"text": "hi"}}]}
    failing = {"steps": [{"type": "call", "name": "fail"}]}
    done = {"steps": [{"type": "text", "deltas": ["done"]}]}
    with talk(live, url=live.scripted(call, failing, done)) as terminal:
        terminal.until("> ")
        terminal.type("go\n")
        lines = terminal.until("done\n> ")
        assert "* shout hi\n  (show)\n* fail \n  show failed: " in lines


def test_a_guard_s_note_names_it(live):
    live.write("censor", '@ext.guard("turn_start")\ndef check(event):\n    return Decision.block("not today")')
    with talk(live, url=live.model("never")) as terminal:
        terminal.until("> ")
        terminal.type("go\n")
        assert "censor: " in terminal.until("not today")


def test_a_panel_is_drawn_when_it_changes(live, show):
    with talk(live) as terminal:
        terminal.until("> ")
        for item, is_drawn in ("eggs", True), ("eggs", False), ("tea", True):
            terminal.type(f"/list {item}\n")
            panel = f"| Shopping\n| milk\n| {item}\n| esc closes\n" if is_drawn else ""
            assert terminal.until("> ") == f"/list {item}\n{panel}"


def test_a_status_is_shown_at_most_once_for_each_line_that_is_typed(live, show):
    with talk(live) as terminal:
        terminal.until("> ")
        terminal.type("/status happy,sad,happy again\n/shout next\n")
        first = terminal.until("NEXT\n")
        terminal.type("/shout more\n")
        shown = first + terminal.until("MORE\n> ")
        assert 1 <= shown.count("[show] ") <= 2  # the last one may come while the next line is carried out
        assert "[show] happy again" in shown
        terminal.type("/status happy again\n/shout end\n")
        assert "[show]" not in terminal.until("END\n")


def test_ctrl_c_stops_waiting_for_a_command(live, show):
    with talk(live) as terminal, live.connect() as watcher:
        terminal.until("> ")
        live.until("show", "ready")
        watcher.call("ext.tap", name="show")
        terminal.type("/wait\n")
        assert "command_invoked" in next(watcher.events(10))["frame"]
        terminal.interrupt()
        assert "(stopped waiting for /wait)" in terminal.until("> ")


# --- trust ----------------------------------------------------------------------------------------------------


def test_untrusted_code_is_reported_once_at_the_start(live):
    live.write("local", SHOW, into=live.project)
    line = f"this directory is not trusted, so zot ignores: local; to review: zotctl trust grant {live.cwd}\n"
    with talk(live, url=live.model("It is done.")) as terminal:
        assert terminal.until("> ").endswith(f"(/help)\n{line}")
        terminal.type("go\n")
        assert terminal.until("done.\n> ") == "go\nzot: It is "
        live.zotctl("trust", "grant", "--yes")
        live.until("local", "ready")
        terminal.type("/shout hello\n")
        assert terminal.until("HELLO\n") == "/shout hello\n"


def test_other_untrusted_code_is_reported_once_the_daemon_has_found_it(live):
    (live.cwd / ".zot" / "skills" / "deploy").mkdir(parents=True)
    (live.cwd / ".zot" / "skills" / "deploy" / "SKILL.md").write_text("---\nname: deploy\n---\n")
    with talk(live) as terminal:
        assert "deploy" in terminal.until(f"zotctl trust grant {live.cwd}\n")


def test_with_the_flag_it_runs_in_new_sessions_of_the_chat_too(live):
    live.write("local", SHOW, into=live.project)
    with talk(live, "--trust") as terminal:
        assert "trust" not in terminal.until("> ")
        terminal.type("/new\n")
        assert "trust" not in terminal.until("> ")
        terminal.type("/shout hello\n")
        terminal.until("HELLO\n")
