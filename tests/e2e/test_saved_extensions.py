"""Extensions in one file, and extensions that are reloaded when they are saved, in a real daemon."""

import json

import pytest

from tests.e2e.shop import Shop, until_state
from zotd.testing.script import CallPart, calls, text

SAYS = """
from zotd.sdk import Decision, Display, Extension, Prompt
import _words, os

ext = Extension("note")

@ext.command("say")
def say(args):
    return Display(f"{{_words.GREETING}} {version}")

@ext.command("ask")
def ask(args):
    return Prompt(f"Look at {{args}}.")

@ext.command("crash")
def crash(args):
    os._exit(3)

@ext.guard("tool_call")
def careful(event):
    if "push" in str(event.tool_args.get("command")):
        return Decision.block("pushing is for people")

ext.run()
"""


@pytest.fixture
def shop(house):
    return Shop(house)


def save(directory, version="one", greeting="hello"):
    """An extension in one file, and its helper."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "_words.py").write_text(f"GREETING = {greeting!r}\n")
    file = directory / "note.py"
    file.write_text(SAYS.format(version=version))
    return file


async def said(talk):
    return (await talk.ask("run_command", name="say"))["text"]


async def until_said(talk, words):
    """Ask until the answer is another one: nothing else tells when a process has taken over."""
    answer: dict[str, object] = {}
    while answer.get("text") != words:
        answer = (await talk.client.answer("run_command", session=talk.id, name="say")).get("data", {})


async def test_a_file_is_an_extension_with_commands_and_guards_as_soon_as_it_is_saved(shop, model, look, results):
    push = calls(CallPart("bash", {"command": "git push"}))
    server = await model(text("hi"), push, text("I see."))
    talk = await shop.open(server)
    await talk.run()
    await talk.client.ask("subscribe", topics=["extensions"])
    file = save(shop.installed)
    await until_state(talk.client, "note", "ready")
    assert await said(talk) == "hello one"
    await talk.ask("run_command", name="ask", args="a.txt")
    await talk.until("done")
    assert "Look at a.txt." in str(server.requests[1].messages[-1])
    assert "pushing is for people" in results(server.requests[2])[0]
    save(shop.installed, "two")
    await until_said(talk, "hello two")
    save(shop.installed, "two", greeting="good morning")
    await until_said(talk, "good morning two")
    file.unlink()
    await until_state(talk.client, "note", "stopped")
    assert (await talk.client.answer("run_command", session=talk.id, name="say"))["code"] == "not_found"


async def test_a_saved_file_that_does_not_start_leaves_the_old_process(shop, model):
    file = save(shop.installed)
    talk = await shop.open(await model(text("hi")))
    assert await said(talk) == "hello one"
    await talk.client.ask("subscribe", topics=["extensions"])
    file.write_text("import nothing_of_this_name\n")
    await until_state(talk.client, "note", "ready")  # with the reason why the new one did not start
    assert await said(talk) == "hello one"
    save(shop.installed, "three")
    await until_said(talk, "hello three")


async def test_what_a_session_names_is_reloaded_when_code_is_saved_and_not_when_it_writes_state(shop, model):
    file = save(shop.house.cwd / "drafts")
    body = (
        'import main_words, os\n@ext.command("v")\ndef v(args):\n    return Display(f"{main_words.WORD} {os.getpid()}")'
    )
    directory = shop.write("mine", body, into=shop.house.cwd)
    (directory / "main_words.py").write_text("WORD = 'one'\n")
    talk = await shop.open(await model(text("hi")), extensions=[str(file), str(directory)])
    assert await said(talk) == "hello one"
    before = (await talk.ask("run_command", name="v"))["text"]
    (directory / "state.json").write_text("{}")
    save(shop.house.cwd / "drafts", "two")
    await until_said(talk, "hello two")
    assert (await talk.ask("run_command", name="v"))["text"] == before
    # Of another length: Python's bytecode cache does not see a change of the same length in the same second.
    (directory / "main_words.py").write_text("WORD = 'another'\n")
    while not (await talk.ask("run_command", name="v"))["text"].startswith("another"):
        pass


async def test_a_linked_directory_is_reloaded_when_it_is_saved_and_an_installed_one_is_not(shop, model):
    def write(version):
        body = '@ext.command("{0}")\ndef command(args):\n    return Display("{1}")'
        shop.write("linked", body.format("linked", version), into=shop.house.cwd / "sources")
        shop.write("copied", body.format("copied", version))

    write("one")
    (shop.installed / "linked").symlink_to(shop.house.cwd / "sources" / "linked")
    talk = await shop.open(await model(text("hi")))
    assert (await talk.ask("run_command", name="copied"))["text"] == "one"
    write("two")
    while (await talk.ask("run_command", name="linked"))["text"] != "two":
        pass
    assert (await talk.ask("run_command", name="copied"))["text"] == "one"


async def test_a_file_of_a_project_runs_as_it_was_granted_and_a_new_grant_takes_the_change_over(shop, model):
    project = shop.house.cwd / ".zot" / "extensions"
    save(project)
    talk = await shop.open(await model(text("hi"), text("hi")))
    assert (await talk.client.answer("run_command", session=talk.id, name="say"))["code"] == "not_found"
    admin = await shop.house.connect(role="admin")
    shown = (await admin.ask("trust.list", path=str(shop.house.cwd)))["workspaces"][0]
    assert any(line.startswith(".zot/extensions/note.py: ") for line in shown["commands"])
    await admin.ask("trust.grant", path=str(shop.house.cwd))
    await until_said(talk, "hello one")
    await talk.client.ask("subscribe", topics=["trust"])
    save(project, "two")
    required: list[str] = []  # the daemon may look when only the helper has been written
    while ".zot/extensions/note.py" not in required:
        required = (await talk.client.until("trust_required"))[-1]["items"]
    # It may have ended already: the code is compared with the grant again right after each start.
    await talk.client.answer("run_command", session=talk.id, name="crash")
    reasons: list[str] = []
    while not any("changed since it was trusted" in one for one in reasons):
        listed = await talk.client.ask("ext.list", session=talk.id)
        reasons = [one["reason"] for one in listed["extensions"]]
    await admin.ask("trust.grant", path=str(shop.house.cwd))
    await until_said(talk, "hello two")


@pytest.mark.parametrize(("name", "why"), [("json", "would hide the module json"), ("a b", "cannot be named a b")])
async def test_a_file_with_a_name_that_cannot_be_used_is_told(shop, model, name, why):
    shop.installed.mkdir(parents=True)
    (shop.installed / f"{name}.py").write_text("print('never run')\n")
    talk = await shop.open(await model(text("hi")))
    await talk.run()
    assert why in json.dumps((await talk.client.ask("ext.doctor", session=talk.id))["findings"])


async def test_a_file_can_be_disabled_and_removed_by_its_name(shop, model):
    file = save(shop.installed)
    talk = await shop.open(await model(text("hi")))
    assert await said(talk) == "hello one"
    admin = await shop.house.connect(role="admin")
    await admin.ask("ext.disable", name="note")
    assert (await talk.client.answer("run_command", session=talk.id, name="say"))["code"] == "not_found"
    await admin.ask("ext.enable", name="note")
    assert await said(talk) == "hello one"
    await admin.ask("ext.remove", name="note")
    assert not file.exists()
    assert [one.name for one in (shop.installed / ".removed").glob("*/*")] == ["note.py"]
