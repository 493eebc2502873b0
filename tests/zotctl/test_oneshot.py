"""One-shot modes of `zot`: -p, --json and --list-models."""

import json
import signal
import subprocess
import sys

import pytest

from zotd.testing import fake_sessions
from zotd.wire import events
from zotd.wire.version import VERSION


def sent(daemon, command):
    return [request for request in daemon.requests if request["type"] == command]


def only_session(daemon):
    (session,) = daemon.sessions.values()
    return session


def test_print_gives_the_last_answer_and_nothing_else(shell, daemon):
    assert shell.zot("-p", "hello") == (0, "hello\n", "")
    assert shell.zot("-p", "tool") == (0, "looked\n", "")


def test_piped_input_comes_before_the_argument(shell, daemon):
    shell.zot("-p", "review this", piped="a diff\n")
    shell.zot("-p", piped="only this\n")
    shell.zot("no terminal means print", piped="")
    assert [request["message"] for request in sent(daemon, "prompt")] == [
        "a diff\n\nreview this",
        "only this",
        "no terminal means print",
    ]


def test_json_prints_the_events_as_they_came_up_to_done(shell, daemon):
    code, out, _ = shell.zot("--json", "hello")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [line["type"] for line in lines] == [
        "user_message", "turn_start", "assistant_start", "text_delta", "usage", "assistant_message", "turn_end", "done",
    ]  # fmt: skip
    assert {line["session"] for line in lines} == {only_session(daemon).id}


@pytest.mark.parametrize(("prompt", "sentence"), [("fail no key", "no key"), ("limit", "the step limit was reached")])
def test_a_failed_run_is_one_sentence_and_exit_code_1(shell, daemon, prompt, sentence):
    assert shell.zot("-p", prompt) == (1, "", f"zot: {sentence}\n")
    code, out, _ = shell.zot("--json", prompt)
    assert code == 1
    assert json.loads(out.splitlines()[-1]) == {"type": "error", "message": sentence}


def test_settings_and_environment_of_a_new_session(shell, daemon):
    shell.env |= {"MY": "1", "ZOTCORE_RPC_TOKEN": "secret", "ZOT_WEB_TOKEN": "secret"}
    flags = ["--provider", "p", "--model", "m", "--api-key", "k", "--base-url", "http://x", "--tools", "read,grep"]
    flags += ["--max-steps", "7", "--reasoning", "low", "--system-prompt=-p", "--append-system-prompt", "a"]
    flags += ["--append-system-prompt", "b", "--ext", "e", "--no-ext", "--budget-usd", "1.5", "--budget-tokens", "9"]
    assert shell.zot("-p", "hi", *flags)[0] == 0
    params = only_session(daemon).params
    assert (params.cwd, params.provider, params.model, params.base_url) == (str(shell.cwd), "p", "m", "http://x")
    assert (params.tools, params.max_steps, params.reasoning) == (["read", "grep"], 7, "low")
    assert (params.budget_usd, params.budget_tokens) == (1.5, 9)
    assert (params.system_prompt, params.append_system_prompt) == ("-p", ["a", "b"])
    assert (params.extensions, params.no_ext, params.secrets.api_key) == ([str(shell.cwd / "e")], True, "k")
    assert params.env["MY"] == "1"
    assert not {"ZOTCORE_RPC_TOKEN", "ZOT_WEB_TOKEN"} & set(params.env)


def test_continue_takes_the_newest_session_of_this_directory(shell, daemon):
    code, _, err = shell.zot("-p", "-c", "hi")
    assert (code, err) == (1, f"zot: there is no session in {shell.cwd} yet; `zot` starts one\n")
    shell.zot("-p", "one")
    (shell.cwd / "other").mkdir()
    shell.zot("-p", "two", "--cwd", "other")
    shell.zot("-p", "-c", "three", "--model", "m2")
    first, second = daemon.sessions.values()
    assert [request["session"] for request in sent(daemon, "prompt")] == [first.id, second.id, first.id]
    assert sent(daemon, "session.configure")[0]["model"] == "m2"


def test_resume_takes_an_id_and_without_one_needs_a_terminal(shell, daemon):
    shell.zot("-p", "one")
    session = only_session(daemon)
    assert shell.zot("-p", "--resume", session.id, "--", "two")[:2] == (0, "two\n")
    assert shell.zot("-p", "--session", session.id, "three")[:2] == (0, "three\n")
    with shell.start("zotd.cli", "-p", "four", "--resume", start_new_session=True) as process:
        _, err = process.communicate(timeout=40)
    assert process.returncode == 1
    assert f"  1  {session.info.updated[:16]}  {session.id}\n" in err
    assert err.endswith("there is no terminal to choose a session on; use --resume ID\n")


def test_what_a_person_should_know_is_on_stderr_once(shell, daemon):
    with shell.start("zotd.cli", "-p", "hang") as process:
        daemon.wait_for("prompt")
        session = only_session(daemon)
        for _ in range(2):
            daemon.do(lambda: session.show(events.Notice("warn", "careful \x1b[2J")))
        daemon.do(lambda: fake_sessions.abort(session))
        out, err = process.communicate(timeout=40)
    assert (out, err) == ("", "zot: careful ^[[2J\nzot: the run was aborted\n")


def test_no_session_leaves_none_behind(shell, daemon):
    assert shell.zot("-p", "--no-session", "hello")[:2] == (0, "hello\n")
    while daemon.sessions:  # until it has noticed that the client is gone
        daemon.do(lambda: None)


def test_ctrl_c_aborts_the_run(shell, daemon):
    with shell.start("zotd.cli", "--json", "hang") as process:
        until(process, "text_delta")
        process.send_signal(signal.SIGINT)
        rest = [json.loads(line)["type"] for line in process.stdout]
        assert process.wait(40) == 130
    assert rest == ["turn_end", "done"]
    assert len(sent(daemon, "abort")) == 1


def test_ctrl_c_takes_back_an_input_that_waits_and_leaves_the_others_run_alone(shell, daemon):
    with shell.start("zotd.cli", "--json", "hang") as first:
        until(first, "text_delta")
        with shell.start("zotd.cli", "--json", "-c", "second") as second:
            daemon.wait_for("prompt", 2)
            second.send_signal(signal.SIGINT)
            assert second.wait(40) == 130
        assert only_session(daemon).queue == []
        assert only_session(daemon).running is not None
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=40)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_client_leaves_the_run_going_and_says_where(shell, daemon, number):
    with shell.start("zotd.cli", "--json", "hang") as process:
        until(process, "text_delta")
        process.send_signal(number)
        assert process.wait(40) == 1
        assert only_session(daemon).id in process.stderr.read()
    assert sent(daemon, "abort") == []
    assert only_session(daemon).running is not None


def test_closed_output_does_not_stop_the_run(shell, daemon):
    with shell.start("zotd.cli", "-p", "hang") as process:
        daemon.wait_for("prompt")
        process.stdout.close()
        assert process.wait(40) == 1
        assert process.stderr.read().startswith("zot: the run continues in session s_")
    assert only_session(daemon).running is not None


def test_daemon_that_dies_is_reported_in_one_line(shell, daemon):
    with shell.start("zotd.cli", "--json", "hang") as process:
        until(process, "text_delta")
        daemon.do(daemon.cut_all)
        out, err = process.communicate(timeout=40)
    assert process.returncode == 1
    assert err == "zot: zotd closed the connection\n"
    assert json.loads(out.splitlines()[-1]) == {"type": "error", "message": "zotd closed the connection"}


def test_bad_usage_is_exit_code_2(shell, daemon):
    assert shell.zot("-p")[0] == 2
    assert shell.zot("-p", "--json", "x")[0] == 2
    assert shell.zot("-p", "x", "--max-steps", "0")[0] == 2
    assert shell.zot("-p", "x", "--frobnicate")[0] == 2
    assert daemon.requests == []


def test_a_directory_that_is_not_there_is_a_sentence(shell, daemon):
    assert shell.zot("-p", "x", "--cwd", "/nonexistent") == (
        1,
        "",
        "zot: there is no directory /nonexistent; create it, or give another with --cwd\n",
    )


def test_models_are_listed(shell, daemon):
    assert shell.zot("--list-models")[1].splitlines()[1].split() == ["fake", "fake-1", "100000"]


def test_help_and_version_need_no_daemon(shell):
    assert shell.zot("--help")[1].startswith("usage: zot")
    assert shell.zot("-v")[:2] == (0, f"zot {VERSION}\n")


def test_a_start_that_fails_says_why(shell):
    shell.env["ZOTD_SOCKET"] = str(shell.cwd / "f" / "zotd.sock")
    (shell.cwd / "f").write_text("")
    code, out, err = shell.zot("-p", "x")
    assert (code, out) == (1, "")
    assert str(shell.cwd / "f") in err
    assert err.count("\n") == 1


def until(process, kind):
    """Read lines up to and including the first event of this type."""
    while json.loads(process.stdout.readline())["type"] != kind:
        pass


def test_a_prompt_loads_neither_asyncio_nor_msgspec(shell, daemon):
    script = (
        "import sys; from zotd.cli import main; main(['-p', 'hi']);"
        "sys.exit(str([m for m in ['asyncio', 'msgspec', 'dataclasses', 'inspect', 'pathlib'] if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=shell.env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.stderr == "[]\n"


def test_ctrl_c_before_the_prompt_is_accepted_aborts_it_too(shell, daemon):
    daemon.slow = "prompt"
    with shell.start("zotd.cli", "-p", "hang") as process:
        daemon.wait_for("prompt")
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 130
    assert only_session(daemon).running is None
