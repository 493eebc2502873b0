"""Approvals on the phone: a paired sender is asked with buttons, and decides; the channel's real process and a real manager."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.channels.conftest import Chat
from tests.channels.house import serving
from tests.jail.conftest import files
from tests.needs import needs
from zotd.channels.answers import INTERRUPTED
from zotd.channels.outcomes import HOW_TO_CHANGE
from zotd.channels.questions import PREVIEW_CHARS
from zotd.config import ApprovalSection
from zotd.store.audit import AuditFilter, AuditTrail
from zotd.testing.script import CallPart, Gate, ScriptedReply, TextPart, calls, text
from zotd.testing.telegram_server import FailedMethod
from zotd.wire import api


@pytest.fixture
def asking(model, open_chat, telegram):
    """`await asking(command)`: a paired sender whose agent wants to run a command, and the question; `may_approve`."""

    async def asking(command, *answers, may_approve=True, **options):
        server = await model(calls(CallPart("bash", {"command": command})), *(answers or [text("done")]))
        chat = await open_chat(server, paired=False, **{"mode": "ask", **options})
        told = await chat.say("let me in")
        await chat.house.channels.pair(told.split()[-1], may_approve=may_approve)
        await telegram.said(2)
        await telegram.write("go")
        return chat, server, (await telegram.said(3))[2]

    return asking


async def test_a_button_lets_a_call_run_and_the_answer_follows(asking, telegram, tmp_path):
    _, _, question = await asking(f"touch {tmp_path}/mark")
    assert "touch" in question["text"]
    assert not (tmp_path / "mark").exists()
    await telegram.press("Allow", question)
    assert (await telegram.said(4))[3]["text"] == "done"
    assert await telegram.noticed(1) == ["Allowed."]
    await telegram.asked("editMessageReplyMarkup")
    assert telegram.labels(question) == ["Allowed"]
    assert (tmp_path / "mark").exists()
    await telegram.press("Allowed", question)
    assert await telegram.noticed(2) == ["Allowed.", "That question is over."]
    await telegram.press("Deny", question, as_sent=True)
    assert (await telegram.noticed(3))[2] == "That question is over."
    assert len(telegram.sent) == 4


async def test_a_decision_on_a_channel_is_in_the_audit_trail(asking, telegram):
    chat, _, question = await asking("echo s3cret")
    await telegram.press("Allow", question)
    await telegram.said(4)
    assert await telegram.noticed(1) == ["Allowed."]
    (entry,) = (await AuditTrail(chat.house.journal.database).page(AuditFilter())).entries
    assert (entry.who, entry.command, entry.outcome) == ("channel:telegram:7", "approve", "done")
    assert (entry.details["tool"], entry.details["decision"]) == ("bash", "allow")
    assert "s3cret" not in str(entry)


async def test_a_button_of_a_question_that_was_decided_elsewhere_says_that_it_is_over(asking, telegram, tmp_path):
    chat, _, question = await asking(f"touch {tmp_path}/mark")
    (session,) = chat.house.manager.loaded
    (one,) = session.approvals.pending()
    params = api.Approve(session=session.id, approval=one.approval, args_digest=one.args_digest, decision="deny")
    await session.decide(params, "ann", accepted=lambda: None)
    await telegram.said(5)
    await telegram.press("Allow", question)
    assert await telegram.noticed(1) == ["That question is over."]
    await telegram.asked("editMessageReplyMarkup")
    assert telegram.labels(question) == ["That question is over"]
    assert not (tmp_path / "mark").exists()


async def test_a_decision_is_sent_as_a_message_if_its_question_was_deleted(asking, telegram, tmp_path):
    _, _, question = await asking(f"touch {tmp_path}/mark")
    telegram.refusals.append(FailedMethod("answerCallbackQuery", 400, "query is too old"))
    telegram.refusals.append(FailedMethod("editMessageReplyMarkup", 400, "message to edit not found"))
    await telegram.press("Deny", question)
    assert {one["text"] for one in (await telegram.said(5))[3:]} == {"Denied.", "done"}


async def test_a_button_lets_a_command_reach_a_host(asking, telegram, tmp_path):
    needs("bwrap", "curl")
    (tmp_path / "page").write_text("what the host says")
    with files(tmp_path) as port:
        command = f"curl -sS http://127.0.0.3:{port}/page"
        _, server, question = await asking(command, mode="workspace", cwd=tmp_path / "work")
        assert question["text"].startswith("May a command connect there?")
        assert f"127.0.0.3:{port} is a loopback address" in question["text"]
        await telegram.press("Allow", question)
        assert (await telegram.said(4))[3]["text"] == "done"
    assert "what the host says" in str(server.requests[1].messages)


async def test_a_button_opens_a_directory_that_a_command_was_refused_to_change(asking, telegram, tmp_path):
    with TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        made = calls(CallPart("bash", {"command": f"touch {folder}/new"}))
        touch = f"touch {folder}/new"
        _, server, question = await asking(touch, made, text("done"), mode="workspace", cwd=tmp_path / "work")
        assert question["text"].startswith("May commands change this?")
        assert f"refused to change {folder} and everything in it" in question["text"]
        assert not (folder / "new").exists()
        await telegram.press("Allow", question)
        assert (await telegram.said(4))[3]["text"] == "done"
        assert (folder / "new").exists()
    assert "A person has allowed it" in str(server.requests[1].messages)


async def test_a_word_denies_a_call_and_the_model_is_told(asking, tmp_path):
    chat, server, _ = await asking(f"touch {tmp_path}/mark")
    before = len(chat.telegram.sent)
    await chat.telegram.write("/deny")
    assert {one["text"] for one in (await chat.telegram.said(before + 2))[before:]} == {"Denied.", "done"}
    assert not (tmp_path / "mark").exists()
    assert "denied" in str(server.requests[1].messages)


async def test_a_sender_who_may_not_decide_is_not_asked_and_the_call_is_denied(asking, tmp_path):
    chat, server, answer = await asking(f"touch {tmp_path}/mark", may_approve=False)
    assert (answer["text"], "reply_markup" in answer) == ("done", False)
    assert not (tmp_path / "mark").exists()
    assert "--approve" in await chat.say("/allow")
    assert len(server.requests) == 2


async def test_a_button_pressed_by_another_user_decides_nothing(asking, telegram, tmp_path):
    chat, _, question = await asking(f"touch {tmp_path}/mark")
    await telegram.press("Allow", question, user=8)
    await telegram.said(4)  # a stranger is told a code
    assert "zotctl channel pair" in telegram.sent[3]["text"]
    assert not (tmp_path / "mark").exists()
    assert await chat.say("/deny") in {"Denied.", "done"}


async def test_who_was_asked_is_told_that_another_client_has_decided(asking, telegram, tmp_path):
    chat, _, _ = await asking(f"touch {tmp_path}/mark")
    (session,) = chat.house.manager.loaded
    (one,) = session.approvals.pending()
    params = api.Approve(session=session.id, approval=one.approval, args_digest=one.args_digest, decision="allow")
    await session.decide(params, "ann", accepted=lambda: None)
    assert [one["text"] for one in (await telegram.said(5))[3:]] == ["Allowed by ann.", "done"]


async def test_a_call_that_is_too_long_to_be_shown_cannot_be_allowed(asking, telegram, tmp_path):
    chat, _, question = await asking(f"touch {tmp_path}/mark; true {'x' * PREVIEW_CHARS}")
    assert "zotctl approvals" in question["text"]
    assert [one["text"] for one in question["reply_markup"]["inline_keyboard"][0]] == ["Deny"]
    assert "too long to be shown" in await chat.say("/allow")
    await telegram.press("Deny", question)
    assert (await telegram.said(5))[4]["text"] == "done"
    assert await telegram.noticed(1) == ["Denied."]
    assert not (tmp_path / "mark").exists()


async def test_a_question_that_waits_over_a_restart_is_asked_again(model, telegram, tmp_path):
    command = f"touch {tmp_path}/mark"
    server = await model(calls(CallPart("bash", {"command": command})), text("done"))
    ask = ApprovalSection(mode="ask")
    async with serving(tmp_path, server.openai_url, telegram.url, approval=ask) as house:
        told = await Chat(telegram, house).say("let me in")
        await house.channels.pair(told.split()[-1], may_approve=True)
        await telegram.said(2)
        await telegram.write("go")
        await telegram.said(3)
    async with serving(tmp_path, server.openai_url, telegram.url, approval=ask):
        question = (await telegram.said(4))[3]
        await telegram.press("Allow", question)
        assert (await telegram.said(5))[4]["text"] == INTERRUPTED
        assert await telegram.noticed(1) == ["Allowed."]
        await server.received(2)  # the run has gone on
    assert (tmp_path / "mark").exists()


async def test_typing_is_shown_while_the_agent_works_and_not_afterwards(model, open_chat, telegram):
    gate = asyncio.Event()
    chat = await open_chat(await model(ScriptedReply([Gate(gate), TextPart(["done"])]), text("again")))
    await telegram.write("go")
    await telegram.asked("sendChatAction", 2)
    assert {fields["chat_id"] for name, fields in telegram.requests if name == "sendChatAction"} == {7}
    gate.set()
    await telegram._until(lambda: telegram.sent[-1]["text"] == "done")
    shown = sum(name == "sendChatAction" for name, _ in telegram.requests)
    await chat.say("/info")
    assert sum(name == "sendChatAction" for name, _ in telegram.requests) <= shown + 1


@pytest.fixture
def proposed(model, open_chat, telegram):
    """`await proposed()`: a paired sender whose agent proposes a plan, the session, and the question."""

    async def proposed(*steps):
        proposal = calls(CallPart("plan", {"steps": [{"text": step} for step in steps]}))
        server = await model(text("hi"), proposal, text("done"))
        chat = await open_chat(server, paired=False, mode="yolo")
        told = await chat.say("let me in")
        await chat.house.channels.pair(told.split()[-1], may_approve=True)
        await telegram.said(2)
        await telegram.write("hello")
        await telegram.said(3)
        (session,) = chat.house.manager.loaded
        await session.plan.begin(lambda: None)
        await telegram.write("make it")
        return server, session, (await telegram.said(4))[3]

    return proposed


async def test_a_plan_is_approved_with_a_button(proposed, telegram):
    _, session, question = await proposed("look", "change")
    assert "The model proposes a plan; to allow is to approve it." in question["text"]
    assert "[ ] look\n[ ] change" in question["text"]
    await telegram.press("Allow", question)
    assert (await telegram.said(5))[4]["text"] == "done"
    assert (session.plan.state.plan.status, session.ledger.row.settings.mode) == ("approved", "yolo")


async def test_a_reply_to_a_plan_approves_it_with_the_steps_in_the_reply(proposed, telegram):
    server, session, question = await proposed("look", "change")
    await telegram.press("Change", question)
    assert await telegram.noticed(1) == [HOW_TO_CHANGE]
    await telegram.reply("[x] look\n[ ] test\nchange", question)
    assert {one["text"] for one in (await telegram.said(6))[4:]} == {"Approved with your steps.", "done"}
    plan = session.plan.state.plan
    assert [(step.text, step.state) for step in plan.steps] == [
        ("look", "done"),
        ("test", "pending"),
        ("change", "pending"),
    ]
    assert (plan.status, session.ledger.row.settings.mode) == ("approved", "yolo")
    assert "[ ] test" in str(server.requests[2].messages)  # the model reads them
    await telegram.reply("[ ] something else", question)
    assert (await telegram.said(7))[6]["text"] == "That question is over."
    assert session.plan.state.plan == plan


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("shorter, please", "it is taken for a remark"),
        ("[ ]", "step 1 has 0 characters"),
        (f"[ ] {'x' * 501}", "step 1 has 501 characters"),
        ("\n".join(["[ ] x"] * 51), "at most 50 steps, not 51"),
    ],
)
async def test_a_reply_that_is_no_plan_is_told_why_and_the_plan_still_waits(proposed, telegram, written, said):
    _, session, question = await proposed("look")
    await telegram.reply(written, question)
    told = (await telegram.said(5))[4]["text"]
    assert said in told
    assert "still waits" in told
    assert (session.plan.state.plan.status, len(session.approvals.pending())) == ("proposed", 1)
    await telegram.press("Allow", question)
    assert (await telegram.said(6))[5]["text"] == "done"


async def test_a_command_approves_a_plan_with_steps_on_platforms_without_replies(proposed, telegram):
    _, session, _ = await proposed("look")
    await telegram.write("/change\n[ ] look twice")
    await telegram.said(6)
    assert [step.text for step in session.plan.state.plan.steps] == ["look twice"]


async def test_a_call_is_not_allowed_by_a_reply_or_with_steps(asking, telegram, tmp_path):
    chat, _, question = await asking(f"touch {tmp_path}/mark")
    assert telegram.labels(question) == ["Allow", "Deny"]
    assert await chat.say("/change [ ] look") == "Only a plan can be changed here; /allow or /deny this call."
    await telegram.reply("[ ] yes", question)
    (session,) = chat.house.manager.loaded
    assert len(session.approvals.pending()) == 1
    assert not (tmp_path / "mark").exists()
