"""Questions that follow the keys."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tests.zottui.fake_ui import FakeUi
from zottui.asking import Newest


def spawner(tasks):
    def spawn(work):
        tasks.create_task(work)

    return spawn


@given(st.lists(st.booleans(), max_size=12))
async def test_the_newest_text_gets_an_answer_and_one_question_is_under_way(moves):
    gates: list[asyncio.Event] = []
    answers: list[tuple[str, str]] = []
    asked: list[str] = []

    async def ask(text):
        assert all(gate.is_set() for gate in gates)
        gates.append(asyncio.Event())
        asked.append(text)
        await gates[-1].wait()
        return f"answer to {text}"

    async with asyncio.TaskGroup() as tasks:
        newest = Newest(spawner(tasks), ask, lambda text, answer: answers.append((text, answer)))
        wanted = "0"
        newest.want(wanted)
        await asyncio.sleep(0)
        for number, types in enumerate(moves, 1):
            if types:
                wanted = str(number)
                newest.want(wanted)
            else:
                gates[-1].set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        while not all(gate.is_set() for gate in gates):
            gates[-1].set()
            for _ in range(4):
                await asyncio.sleep(0)
    assert answers[-1] == (wanted, f"answer to {wanted}")
    assert len(set(asked)) == len(asked)


async def test_an_answer_that_was_overtaken_is_dropped():
    gate = asyncio.Event()
    answers: list[str] = []

    async def ask(text):
        await gate.wait()
        return text

    async with asyncio.TaskGroup() as tasks:
        newest = Newest(spawner(tasks), ask, lambda _, answer: answers.append(answer))
        newest.want("a")
        await asyncio.sleep(0)
        newest.want("ab")
        newest.want("abc")
        gate.set()
    assert answers == ["abc"]


async def test_after_a_failure_it_asks_again():
    answers: list[str] = []

    async def ask(text):
        if text == "bad":
            raise OSError(text)
        return text

    async with FakeUi() as fake_ui:
        newest = Newest(fake_ui.spawn, ask, lambda _, answer: answers.append(answer))
        newest.want("bad")
        await fake_ui.turn()
        newest.want("good")
        await fake_ui.turn()
    assert (answers, fake_ui.said) == (["good"], ["bad"])
