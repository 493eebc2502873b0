"""Looking through a conversation, key by key."""

import asyncio
import base64

from tests.zottui.viewer.conversations import Stored, call, lines, result, shell, talk, user, zot
from tests.zottui.viewer.reading import reading
from zotd.client.errors import ClientError
from zotd.wire import api
from zottui.blocks import CodeLines, Rule
from zottui.viewer.loaded import MOST_MESSAGES


def long_output():
    """A conversation with a tool that has printed a lot, in the middle of it."""
    return Stored(
        [
            *talk(3),
            user(20, "run it"),
            zot(21, "running", call("c", command="make")),
            result(22, "c", f"$ make\n\n{lines(40)}\n\n[exit 0]  Took 0.1s"),
            zot(23, "it works"),
            *talk(3, first=10),
        ]
    )


async def test_it_begins_at_the_newest_message_and_says_where_that_is():
    async with reading(Stored(talk(12)), height=4) as it:
        assert it.text == "\nyou: question 12\n|\n>zot: answer 12"
        assert it.last_line.startswith("first  turn 12/12  100%")


async def test_the_cursor_moves_by_rows_pages_and_prompts():
    async with reading(Stored(talk(12)), height=8) as it:
        await it.press("up", "k")
        assert it.cursor == "you: question 12"
        await it.press("pageup", "b")
        assert it.last_line.startswith("first  turn 8/12  65%")
        await it.press("g")
        assert it.text.startswith(">\n|you: question 1\n\nzot: answer 1")
        await it.press("}", "}")
        assert it.text.startswith(">\n|you: question 3")
        await it.press("j", "j", "{")
        assert it.text.startswith(">\n|you: question 3")
        await it.press("{")
        assert it.last_line.startswith("first  turn 2/12")
        await it.press("G")
        assert it.cursor == "zot: answer 12"


async def test_a_prompt_can_be_asked_for_by_its_number():
    async with reading(Stored(talk(1200)), turn=3) as it:
        assert it.text.startswith(">\n|you: question 3\n")
        assert it.last_line.startswith("first  turn 3/1200  0%")
        for _ in range(20):
            await it.press("pagedown")
        assert it.last_line.startswith("first  turn 58/1200")


async def test_an_unknown_prompt_number_is_reported():
    async with reading(Stored(talk(12)), turn=13) as it:
        assert "no prompt 13: there are 12" in it.last_line


async def test_a_message_of_another_session_can_be_asked_for():
    other = api.SessionInfo("s2", "second", "/", "openai", "m", "off", "ask", "idle", "", "")
    async with reading(Stored(talk(700)), session="s2", seq=4 * 300 - 1, answers={api.OfSession: other}) as it:
        assert it.cursor == ""
        assert it.rows[1] == "|zot: answer 300"
        assert it.last_line.startswith("second  turn 300/700  42%")
        assert {asked.session for asked in it.fake_ui.asked} == {"s2"}


async def test_a_result_that_was_found_is_shown_with_its_call():
    async with reading(long_output(), seq=22) as it:
        assert it.rows[1] == "|zot: running"


async def test_a_message_that_a_rewind_has_left_behind_is_shown_among_its_own():
    stored = Stored(talk(5))
    stored.left = {17, 19}
    async with reading(stored, seq=17) as it:
        assert it.rows[-2:] == [">", "|you: question 5"]
        assert "this message is on a branch that a rewind left" in it.last_line
    async with reading(stored, seq=18) as it:
        assert "no message 18" in it.last_line


async def test_the_last_call_is_shown_whole():
    async with reading(long_output(), call=1, tools=1, height=60) as it:
        assert it.cursor == ""
        assert "|tool: bash  make" in it.rows
        assert "|  line 40" in it.rows
    async with reading(Stored(talk(2)), call=0) as it:
        assert "no tool call yet" in it.last_line


async def test_enter_shows_a_tools_whole_output_and_takes_it_back():
    async with reading(long_output(), height=60) as it:
        assert "  … 32 more (enter)" in it.text
        assert "line 20" not in it.text
        await it.press("enter")
        assert "move the cursor to a tool" in it.last_line
        await it.press("/", *"make", "enter", "enter")
        assert [f"|  line {n}" in it.rows for n in (1, 20, 40)] == [True, True, True]
        await it.press("enter")
        assert "line 20" not in it.text
        await it.press("e")
        assert "line 20" in it.text


async def test_a_command_of_a_person_is_shown_as_a_call():
    async with reading(Stored([shell(1, "make", lines(30))]), height=60) as it:
        assert it.rows[1] == "|tool: !  make"
        await it.press("enter")
        assert it.rows[-1].endswith("line 30")


async def test_hits_are_marked_and_gone_to_in_the_direction_in_which_there_are_some():
    async with reading(Stored(talk(30)), height=9) as it:
        await it.press("/", *"WER 2", "enter")
        assert "no match: WER 2" in it.last_line  # capitals count
        await it.press("/", *"wer 2", "enter")
        assert it.cursor == "zot: answer 29"
        assert set(it.marked) == {"wer 2"}
        await it.press("n", "n")
        assert it.cursor == "zot: answer 27"
        await it.press("N")
        assert it.cursor == "zot: answer 28"
        await it.press("N", "N")
        assert "no match above" not in it.last_line
        assert "no match below: wer 2" in it.last_line


async def test_a_search_goes_through_pages_that_are_not_loaded_and_comes_back():
    stored = Stored([user(1, "the old needle"), *talk(2000, first=2)])
    async with reading(stored) as it:
        await it.press("/", *"old needle", "enter")
        assert it.cursor == "you: the old needle"
        assert it.last_line.startswith("first  turn 1/2001  0%")
        await it.press("/", *"answer 1999", "enter")
        assert it.cursor == "zot: answer 1999"
        assert len(it.visit.reader.loaded) <= MOST_MESSAGES


async def test_words_are_found_as_shown_whatever_markdown_is_between_them():
    async with reading(Stored([user(1, "go"), zot(3, "this is **very** important"), *talk(300, first=3)])) as it:
        await it.press("/", *"very important", "enter")
        assert it.cursor == "zot: this is very important"


async def test_enter_shows_a_match_in_a_collapsed_output():
    async with reading(long_output(), height=9) as it:
        await it.press("/", *"line 25", "enter")
        assert it.cursor == "  … 32 more (enter)"
        await it.press("enter")
        assert it.cursor == "  line 25"
        assert it.marked == ["line 25"]


async def test_a_search_says_how_far_it_is_and_escape_stops_it():
    stored = Stored(talk(5000))
    async with reading(stored) as it:
        it.viewer.key("<any>", "/")
        it.viewer.key("<bracketed-paste>", "nowhere")
        it.viewer.key("enter")
        for _ in range(20):
            await asyncio.sleep(0)
        assert "searching: " in it.last_line
        asked = len(stored.asked)
        await it.press("escape")
        assert "searching" not in it.last_line
        await it.settle()
        assert len(stored.asked) <= asked + 1
        assert it.cursor == "zot: answer 5000"
        assert not it.left.is_set()
        await it.press("escape")
        assert it.left.is_set()


async def test_keys_after_the_slash_go_to_the_search_only():
    async with reading(Stored(talk(12))) as it:
        await it.press("/", "q", "v", "backspace")
        assert it.last_line.startswith("/q")
        await it.press("escape")
        assert not it.left.is_set()
        assert it.last_line.startswith("first  turn 12/12")


async def test_y_copies_the_block_under_the_cursor():
    async with reading(long_output(), height=60) as it:
        await it.press("y")
        assert base64.b64decode(it.fake_ui.raw[-1].split(";")[2].removesuffix("\x1b\\")).decode() == "answer 12"
        assert "copied 9 characters" in it.last_line
        await it.press("/", *"make", "enter", "y")
        copied = base64.b64decode(it.fake_ui.raw[-1].split(";")[2].removesuffix("\x1b\\")).decode()
        assert copied.startswith("$ make\n\nline 1\n")
        assert copied.endswith("Took 0.1s")


async def test_the_place_stays_when_the_width_changes():
    words = " ".join(f"word{n}" for n in range(400))
    async with reading(Stored([*talk(3), user(20, "tell"), zot(22, words), *talk(3, first=10)]), height=9) as it:
        await it.press("/", *"word200", "enter")
        for width in (40, 60, 120, 30, 80):
            it.width = width
            assert "".join(it.marked) == "word200"


async def test_messages_that_come_while_it_is_at_the_end_are_shown_at_once():
    stored = Stored([user(1, "go"), zot(3, "", call("c"))])
    async with reading(stored) as it:
        stored.messages += [result(5, "c", "done"), zot(7, "all is well"), user(9, "thanks")]
        await it.visit.navigator.load_news()
        assert it.text.endswith("tool: bash  run c\n  done\n\nzot: all is well\n|\n>you: thanks")
        assert it.last_line.startswith("first  turn 2/2  100%")
        await it.press("g")
        stored.messages.append(zot(11, "welcome"))
        await it.visit.navigator.load_news()
        assert it.cursor == ""
        assert it.text.startswith(">\n|you: go")


async def test_memory_stays_flat_however_far_one_goes():
    stored = Stored(talk(3000))
    async with reading(stored, height=40) as it:
        for _ in range(150):
            await it.press("pageup")
            assert len(it.visit.reader.loaded) <= MOST_MESSAGES
        await it.press("g")
        for _ in range(150):
            await it.press("pagedown")
            assert len(it.visit.reader.loaded) <= MOST_MESSAGES
        assert it.text.count("answer") >= 9


async def test_every_message_is_seen_once_on_the_way_through():
    stored = Stored(talk(700))
    async with reading(stored, height=8) as it:
        seen = []
        await it.press("g")
        while not it.visit.reader.is_live:
            seen += [row[5:] for row in it.rows if "answer" in row]
            await it.press(*["j"] * 8)
        assert [row.split()[-1] for row in dict.fromkeys(seen)][:690] == [str(n) for n in range(1, 691)]


async def test_the_output_that_is_to_be_printed_waits_for_the_end():
    async with reading(long_output(), height=60) as it:
        await it.press("[")
        assert "move the cursor to a tool" in it.last_line
        await it.press("/", *"make", "enter", "[")
        assert [type(block) for block in it.viewer.printed] == [Rule, CodeLines]
        assert it.fake_ui.printed == []


async def test_a_failed_page_is_reported_and_loaded_again_with_the_next_key():
    stored = Stored(talk(700))
    async with reading(stored) as it:
        await it.settle()
        it.fake_ui.answers[api.History] = ClientError("there is no connection to zotd")
        await it.press("g")
        assert "there is no connection to zotd" in it.last_line
        it.fake_ui.answers[api.History] = stored
        await it.press("g")
        assert it.text.startswith(">\n|you: question 1\n")


async def test_nothing_that_was_said_can_steer_the_terminal():
    bad = "a\x1b]0;title\x07b\u202ec\x9b2Jd"
    stored = Stored([user(1, bad), zot(3, bad, call("c", command=bad)), result(5, "c", bad)])
    async with reading(stored, height=40) as it:
        await it.press("e")
        assert "^[]0;title^Gb<U+202E>c<U+009B>2Jd" in it.text  # `shown` fails when anything is left


async def test_an_empty_session_is_an_empty_screen():
    async with reading(Stored([])) as it:
        assert it.text == ""
        await it.press("j", "k", "g", "G", "enter", "e", "y", "[", "{", "}", "pageup", "/", "x", "enter", "n")
        it.viewer.wheel(down=True)
        it.viewer.click(3)
        assert it.last_line.startswith("first  turn 0/0")


async def test_the_wheel_moves_the_screen_and_a_click_the_cursor():
    async with reading(Stored(talk(12)), height=6) as it:
        it.viewer.wheel(down=False)
        assert it.rows == ["zot: answer 10", "", "you: question 11", "", "zot: answer 11", ">"]
        it.viewer.click(1)
        assert it.rows[1].startswith(">")
