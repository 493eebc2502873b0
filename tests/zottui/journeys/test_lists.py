"""What commands that list and look show on a terminal of 80 columns."""

from tests.zottui.journeys.world import PROMPT, rests


def ask(zot, words):
    zot.wait(PROMPT)
    zot.type(words)
    zot.key("Enter")


def test_a_search_shows_the_words_it_found_with_the_session_and_its_date(world):
    world.model.says("far away from the beginning of a long reply stands the word haystack and then more of it")
    zot = world.zot(columns=80)
    ask(zot, "/rename a session with quite a long name of its own")
    ask(zot, "go")
    zot.wait("haystack")
    rests(zot)
    ask(zot, "/find haystack")
    zot.wait(r"haystack.*20\d\d-\d\d-\d\d  a session with quit")


def test_the_viewer_keeps_its_hints_and_messages_beside_a_long_session_name(world):
    zot = world.zot(columns=80)
    ask(zot, "/rename a session with quite a long name of its own")
    world.model.says("one")
    ask(zot, "go")
    zot.wait("^one$")
    rests(zot)
    zot.key("C-t")
    zot.wait(r"turn 1/1  100%  q back  / search")
    zot.key("/")
    zot.type("nowhere")
    zot.key("Enter")
    zot.wait(r"turn 1/1 .*nowhere", where="screen")
    zot.key("q")


def test_who_and_help_show_no_empty_or_wrong_entries(world):
    zot = world.zot()
    ask(zot, "/who")
    zot.wait(r"\(you\) is here, since")
    ask(zot, "/help")
    zot.wait("leave; runs continue", where="history")
    assert "()" not in zot.history()


def test_an_image_that_a_prompt_mentions_goes_along(world):
    png = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
    (world.cwd / "red.png").write_bytes(png)
    world.model.says("it is red")
    zot = world.zot()
    ask(zot, "what is in @red.png, and in @missing.png?")
    zot.wait("^it is red$")
    sent = world.model.seen(0)
    assert sent.count("data:image/png;base64,") == 1
    assert "@red.png" in sent


def test_an_image_that_cannot_be_sent_is_refused_and_the_prompt_kept(world):
    (world.cwd / "note.png").write_text("no image")
    zot = world.zot()
    ask(zot, "what is in @note.png")
    zot.wait(r"note.png is\s+not\s+a\s+PNG", where="history")
    zot.wait("^❯ what is in @note.png")
    assert world.model.requests == []


def test_an_export_is_refused_in_a_form_that_it_cannot_have(world):
    zot = world.zot()
    world.model.says("one")
    ask(zot, "go")
    zot.wait("^one$")
    rests(zot)
    ask(zot, "/export talk.html")
    zot.wait(r"/export writes \.md \(Markdown\) or \.jsonl \(everything\), not \.html")
    assert not (world.cwd / "talk.html").exists()
