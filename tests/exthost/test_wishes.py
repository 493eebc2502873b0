"""Events go to extensions, and wishes come back."""

from tests.exthost.conftest import run, tell
from zotd.wire import ext


async def test_events_come_in_order_and_only_to_those_who_asked(workshop):
    source = """
greet()
for frame in frames():
    say({"type": "notify", "message": str(frame.get("step"))})
"""
    workshop.script("x", source)
    async with workshop.host() as host:
        for step in range(100):
            tell(host, ext.Event(event="turn_start", step=step))
            tell(host, ext.Event(event="turn_end", stop="end"))
        await workshop.heard.until(lambda: len(workshop.heard.wishes) == 100)
    assert [wish.message for _, _, wish in workshop.heard.wishes] == [str(step) for step in range(100)]


async def test_an_event_that_is_too_long_costs_only_itself(workshop):
    workshop.acting("good")
    async with workshop.host() as host:
        assert not host.send("good", ext.Event(event="turn_start", text="x" * 5_000_000))
        assert host.send("good", ext.PanelClosed("p"))
        assert not host.send("nobody", ext.PanelClosed("p"))
        assert await run(host, "good") == (False, "{}")


async def test_a_wish_is_about_the_session_whose_call_is_answered(workshop):
    source = """
hello()
say({"type": "submit", "text": "too early"})
say({"type": "notify", "message": "early"})
say({"type": "ready"})
def work(frame):
    say({"type": "notify", "message": "during"})
    say({"type": "set_status", "key": "k", "text": "v", "session_id": "s_2"})
    answer(frame)
    say({"type": "submit", "text": "go"})
    say({"type": "open_panel", "panel": {"id": "p"}})
    say({"type": "clear_notes"})
    say({"type": "module_error", "file": "x.py", "error": "?"})
serve(work)
"""
    workshop.script("x", source)
    async with workshop.host() as host:
        await run(host, "x")
        await workshop.heard.until(lambda: workshop.heard.others)
    assert workshop.heard.wishes == [
        ("x", None, ext.Notify("early")),
        ("x", "s_1", ext.Notify("during")),
        ("x", "s_2", ext.SetStatus("k", "v", "s_2")),
        ("x", "s_1", ext.Submit("go")),
        ("x", "s_1", ext.OpenPanel(ext.Panel("p"))),
        ("x", None, ext.ClearNotes()),
    ]
    assert workshop.heard.others == [("x", ext.ModuleError("x.py", "?"))]
    assert "a submit was dropped: it names no session" in (workshop.home / "logs/ext-x.log").read_text()


async def test_one_process_for_all_directories_is_told_which_one_is_meant(workshop):
    source = """
greet()
for frame in frames():
    if frame["type"] == "tool_call":
        say(result(frame, content=[{"type": "text", "text": str(frame.get("cwd"))}]))
"""
    workshop.script("one", source, scope="daemon")
    workshop.script("two", source)
    async with workshop.host() as host:
        assert await run(host, "one") == (False, "/project")
        assert await run(host, "two") == (False, "None")
