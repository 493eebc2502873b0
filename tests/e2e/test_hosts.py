"""Which hosts the commands of a session reach in the mode `workspace`, in a real daemon, bubblewrap and curl."""

import signal
import socket
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import only
from tests.e2e.shop import Shop
from tests.e2e.test_workspace import asked_by, bash, decide, opened, results_of
from tests.e2e.test_workspace import user as user  # noqa: PLC0414  (a fixture)
from tests.jail.conftest import files
from tests.needs import needs
from zotd.jail import Mechanism
from zotd.permissions.call_hosts import ASKED_MAX, REFUSED_MAX
from zotd.proxy.traffic_log import log_path, read_log
from zotd.testing.script import CallPart, calls, text

ASKED_TIMES = 50
"""How often a command is run until it does not make its network itself."""

NETWORK = "[sandbox]\nhosts = {}\n"


@pytest.fixture
async def yard(monkeypatch, model, user):
    needs("curl")
    runtime = user / "runtime"
    runtime.mkdir(mode=0o700)
    async with opened(Mechanism.BUBBLEWRAP, monkeypatch, model, user, XDG_RUNTIME_DIR=str(runtime)) as yard:
        yield yard


@contextmanager
def site(user):
    """Where a server outside of the jail is: an address that is allowed nowhere by default."""
    folder = user / "site"
    folder.mkdir()
    (folder / "page").write_text("a page")
    with files(folder) as port:
        yield f"127.0.0.3:{port}"


def fetch(host):
    return f"curl -sS http://{host}/page"


def curl(host):
    return bash(fetch(host))


def outlets_of(yard):
    return Path(yard.house.place.env["XDG_RUNTIME_DIR"], "zot", "outlets")


def log_of(yard):
    return [(one.who, f"{one.host}:{one.port}", one.outcome) for one in read_log(log_path(str(yard.house.place.home)))]


async def test_a_host_of_the_configuration_is_reached_without_a_question_and_logged_by_session(yard, user):
    with site(user) as host:
        await yard.configure(NETWORK.format([host]))
        talk, _ = await yard.open(calls(CallPart(*curl(host))), text("done"))
        events = await talk.run()
    assert only(events, "approval_requested") == only(events, "notice") == []
    assert "a page" in results_of(events)[0]
    assert log_of(yard) == [(talk.id, host, "allowed")]


async def test_another_configuration_holds_from_the_next_command_on(yard, user):
    with site(user) as host:
        steps = (calls(CallPart(*curl(host))), text("done"))
        talk, _ = await yard.open(*steps, *steps)
        await yard.configure('[sandbox]\nnetwork = "off"\n')
        before = results_of(await talk.run())
        await yard.configure('[sandbox]\nnetwork = "open"\n')
        after = results_of(await talk.run())
    assert ("a page" in before[0], "a page" in after[0]) == (False, True)
    assert log_of(yard) == []


async def test_a_malformed_host_is_left_out_and_users_are_told(yard, user):
    with site(user) as host:
        await yard.configure(NETWORK.format(["http://x.example", host]))
        [result], events = await yard.run(curl(host))
    assert "a page" in result
    [notice] = only(events, "notice")
    assert "malformed and left out" in notice["text"]
    assert "write only the host of a URL" in notice["text"]


async def test_without_a_safe_place_for_the_proxy_commands_have_no_network_and_users_are_told_once(yard, user):
    with site(user) as host:
        await yard.configure(NETWORK.format([host]))
        steps = (calls(CallPart(*curl(host))), text("done"))
        talk, _ = await yard.open(*steps, *steps)
        outlets_of(yard).mkdir(parents=True)
        outlets_of(yard).chmod(0o755)
        first, second = await talk.run(), await talk.run()
    assert "a page" not in results_of(first)[0]
    [notice] = only(first, "notice")
    assert "the proxy cannot be started, so commands of this session have no network" in notice["text"]
    assert only(second, "notice") == []


async def test_a_command_sees_no_outlet_but_its_own_whatever_the_environment_of_its_client_says(yard, user):
    with site(user) as host:
        await yard.configure(NETWORK.format([host]))
        outlets = outlets_of(yard)
        look = bash(
            f"test $(ls {outlets} | wc -l) -le 1 && echo alone"
        )  # none, if its namespace was made ahead of need
        [first, result], _ = await yard.run(curl(host), look)
        for name in ("another", "and another"):
            (outlets / name).touch()
        [again], _ = await yard.run(look)
    assert "a page" in first
    assert ("alone" in result, "alone" in again) == (True, True)


async def test_from_the_second_command_on_its_network_is_made_ahead_of_need(yard, user):
    needs("nsenter")
    with site(user) as host:
        await yard.configure(NETWORK.format([host]))
        # The first process in a jail is bwrap, whose arguments say whether it has made the namespace.
        look = bash(f"grep -c unshare-ne[t] /proc/1/cmdline; {fetch(host)}")
        talk, _ = await yard.open(*[calls(CallPart(*look)), text("done")] * ASKED_TIMES)
        for number in range(ASKED_TIMES):  # it is made in the background, and no command waits for it
            [result] = results_of(await talk.run())
            assert "a page" in result
            assert "1\n" in result or number > 0
            if "0\n" in result:
                return
    pytest.fail("each command has made its own")


# --- the border -----------------------------------------------------------------------------------------------------


async def test_a_command_waits_for_a_person_and_goes_on_when_the_host_is_allowed(yard, user):
    with site(user) as host:
        talk, _ = await yard.open(calls(CallPart(*bash(f"echo once >> count; {fetch(host)}"))), text("done"))
        asked = await asked_by(talk)
        assert (asked["tool"], asked["args"]["host"], str(asked["args"]["port"])) == ("network", *host.split(":"))
        assert asked["preview"].startswith(f"bash wants to connect: {host} is a loopback address, and not on the list")
        assert f"$ echo once >> count; {fetch(host)}" in asked["preview"]
        assert await talk.state() == "waiting"
        second = await yard.house.connect(client={"name": "bob"})
        about = {"approval": asked["approval"], "args_digest": asked["args_digest"], "decision": "allow"}
        await second.ask("approve", session=talk.id, **about)
        events = await talk.until("done")
    assert only(events, "approval_resolved")[0]["by"] == "bob"
    assert "a page" in results_of(events)[0]
    assert (yard.work / "count").read_text() == "once\n"


async def test_what_is_denied_is_refused_with_the_reason_and_not_asked_again_by_the_same_command(yard, user):
    with site(user) as host:
        again = f"for n in 1 2 3 4 5; do {fetch(host)}; done"
        talk, _ = await yard.open(calls(CallPart(*bash(again))), calls(CallPart(*bash(again))), text("done"))
        await decide(talk, await asked_by(talk), "deny", reason="use the mirror")
        events = await talk.until("approval_requested")
        [result] = results_of(events)
        await decide(talk, events[-1], "deny")
        assert only(await talk.until("done"), "approval_requested") == []
    assert result.count("zot: denied by the user: use the mirror") == 5
    assert f"It may not: connect to {host} (denied by the user: use the mirror)." in result
    assert [outcome for *_, outcome in log_of(yard)] == ["refused"] * 10


async def test_connections_to_the_same_host_join_the_same_question(yard, user):
    with site(user) as host:
        talk, _ = await yard.open(calls(CallPart(*bash(f"{fetch(host)} & {fetch(host)} & wait"))), text("done"))
        await decide(talk, await asked_by(talk))
        events = await talk.until("done")
    assert only(events, "approval_requested") == []
    assert results_of(events)[0].count("a page") == 2


async def test_once_is_for_one_command_and_the_session_for_all_of_this_session_only(yard, user):
    with site(user) as host:
        fetched = calls(CallPart(*curl(host)))
        talk, _ = await yard.open(fetched, fetched, fetched, text("done"))
        await decide(talk, await asked_by(talk))
        await decide(talk, (await talk.until("approval_requested"))[-1], scope="session")
        events = await talk.until("done")
        assert only(events, "approval_requested") == []
        assert ["a page" in result for result in results_of(events)] == [True, True]
        other, _ = await yard.open(fetched, text("done"))
        await decide(other, await asked_by(other), "deny")
        await other.until("done")


async def test_always_is_a_rule_for_all_sessions(yard, user):
    with site(user) as host:
        fetched = calls(CallPart(*curl(host)))
        talk, _ = await yard.open(fetched, text("done"))
        await decide(talk, await asked_by(talk), scope="always")
        await talk.until("done")
        [result], events = await yard.run(curl(host))
    assert "a page" in result
    assert only(events, "approval_requested") == []
    rule = f'[[rules]]\ntool = "network"\nmatch = "{host}"\naction = "allow"\n'
    assert rule in (yard.house.place.home / "config.toml").read_text()


async def test_the_end_of_a_command_withdraws_its_question(yard, user):
    with site(user) as host:
        command = f"{fetch(host)} & until [ -e go ]; do sleep 0.1; done"
        talk, _ = await yard.open(calls(CallPart(*bash(command))), text("done"))
        asked = await asked_by(talk)
        (yard.work / "go").touch()
        resolved = (await talk.until("approval_resolved"))[-1]
        assert (resolved["decision"], resolved["reason"]) == ("cancelled", "the command that asked has ended")
        about = {"approval": asked["approval"], "args_digest": asked["args_digest"], "decision": "allow"}
        assert await talk.refused("approve", **about) == "already_resolved"
        await talk.until("done")


async def test_an_abort_withdraws_the_question(yard, user):
    with site(user) as host:
        talk, _ = await yard.open(calls(CallPart(*curl(host))), text("done"))
        await asked_by(talk)
        await talk.ask("abort")
        [resolved] = only(await talk.until("done"), "approval_resolved")
        assert resolved["decision"] == "cancelled"
        assert (await talk.ask("approval.list"))["approvals"] == []


async def test_the_arguments_of_a_command_that_runs_cannot_be_changed(yard, user):
    with site(user) as host:
        talk, _ = await yard.open(calls(CallPart(*curl(host))), text("done"))
        asked = await asked_by(talk)
        about = {"approval": asked["approval"], "args_digest": asked["args_digest"], "decision": "allow"}
        assert await talk.refused("approve", **about, args={"host": "example.org", "port": 1}) == "bad_request"
        await talk.ask("abort")
        await talk.until("done")


async def test_a_question_without_an_answer_ends_and_the_command_is_told(yard, user):
    with site(user) as host:
        await yard.configure("[approval]\nttl_s = 0.5\n")
        talk, _ = await yard.open(calls(CallPart(*curl(host))), text("done"))
        events = await talk.run()
    [asked], [resolved] = only(events, "approval_requested"), only(events, "approval_resolved")
    assert (asked["expires"] is None, resolved["decision"]) == (False, "deny")
    assert "zot: there was no decision within 0.5 s" in results_of(events)[0]


async def test_without_a_client_that_can_decide_the_setting_decides(yard, user):
    with site(user) as host:
        await yard.configure('[approval]\nunattended = "deny"\n')
        server = await yard.model(calls(CallPart(*curl(host))), text("done"))
        talk = await yard.house.create("openai", server, None, mode="workspace", env=yard.env)
        events = await talk.run()
    assert only(events, "approval_requested") == []
    assert "no attached client can decide" in results_of(events)[0]


async def test_a_rule_denies_what_the_configuration_allows(yard, user):
    with site(user) as host:
        rule = '[[rules]]\ntool = "network"\nmatch = "127.0.0.3"\naction = "deny"\n'
        await yard.configure(rule + NETWORK.format([host]))
        [result], events = await yard.run(curl(host))
    assert only(events, "approval_requested") == []
    assert f"connect to {host} ({host} is denied by a rule" in result


async def test_a_command_that_asks_about_a_thousand_hosts_is_asked_about_ten(yard):
    loop = "for n in $(seq 1000); do echo url = http://127.1.$((n / 250)).$((n % 250 + 1)):9/; done > urls"
    command = f"{loop}; curl -s --parallel --parallel-immediate --parallel-max 300 -K urls -o /dev/null"
    talk, _ = await yard.open(calls(CallPart(*bash(command))), text("done"))
    asked = [await asked_by(talk)]
    while len(asked) < ASKED_MAX:
        asked.append((await talk.until("approval_requested"))[-1])
    for one in asked:
        await decide(talk, one, "deny")
    events = await talk.until("done")
    assert only(events, "approval_requested") == []
    [result] = results_of(events)
    assert 0 < result.count("connect to 127.1.") <= REFUSED_MAX


async def test_the_question_shows_what_a_terminal_would_obey(yard, user):
    with site(user) as host:
        talk, _ = await yard.open(calls(CallPart(*bash(f"true '\x1b[2J\u202e'; {fetch(host)}"))), text("done"))
        preview = (await asked_by(talk))["preview"]
        await talk.ask("abort")
        await talk.until("done")
    assert "\\x1b[2J\\u202e" in preview
    assert {"\x1b", "\u202e"} & set(preview) == set()


async def test_a_name_that_is_allowed_does_not_open_the_address_to_which_it_leads_later(yard, user, monkeypatch):
    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *rest, **more: resolve("127.0.0.3", *rest, **more))
    with site(user) as host:
        port = host.rpartition(":")[2]
        await yard.configure(NETWORK.format([f"rebound.example:{port}"]))
        talk, _ = await yard.open(calls(CallPart(*curl(f"rebound.example:{port}"))), text("done"))
        asked = await asked_by(talk)
        assert asked["args"]["host"] == "127.0.0.3"
        assert f"rebound.example leads to a loopback address, and {host} is not on the list" in asked["preview"]
        await decide(talk, asked, "deny")
        [result] = results_of(await talk.until("done"))
    assert "a page" not in result


async def test_extensions_hear_of_decisions_about_hosts(yard, user):
    shop = Shop(yard.house)
    told = """
        @ext.on("permission_decision")
        def hear(event):
            ext.notify("info", event.tool_name)
        """
    shop.write("told", told)
    with site(user) as host:
        env = {**shop.env, **yard.env, "PATH": shop.env["PATH"]}
        talk, _ = await yard.open(calls(CallPart(*curl(host))), text("done"), env=env)
        await talk.ask("prompt", message="go")
        events = [*await talk.until("approval_requested", "ext_notify")]
        events += await talk.until({"approval_requested": "ext_notify"}.get(events[-1]["type"], "approval_requested"))
        await decide(talk, only(events, "approval_requested")[0])
        events += await talk.until("ext_notify")
        await talk.until("done")
    assert [one["message"] for one in only(events, "ext_notify")] == ["bash", "network"]


@pytest.mark.timeout(240)  # two starts of a daemon, and the first request of one
async def test_after_the_daemon_was_killed_the_question_is_over(process, model, user):
    needs("bwrap", "curl")
    with site(user) as host:
        server = await model(calls(CallPart(*curl(host))), text("done"))
        client = await process.connect(client={"name": "ann"}, can_approve=True)
        talk = await process.create("openai", server, client, mode="workspace")
        asked = await asked_by(talk)
        process.restart(signal.SIGKILL)
        again = await process.connect(client={"name": "ann"}, can_approve=True)
        await again.ask("attach", session=talk.id, after={"epoch": talk.epoch, "seq": asked["seq"]})
        [resolved] = only(await again.until("replay_complete"), "approval_resolved")
        assert (resolved["approval"], resolved["decision"]) == (asked["approval"], "cancelled")
        assert (await again.ask("approval.list"))["approvals"] == []
        assert (await again.ask("session.get", session=talk.id))["state"] == "held"
