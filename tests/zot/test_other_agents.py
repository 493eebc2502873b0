"""`zot.Agent` with another agent that answers: `zotd.testing.odd_agent`."""

import pytest

from tests.e2e.odd import make_known, odd_processes
from zot import Agent, Allow, Deny, OptionError, RunError, tool
from zotd.testing.live_daemon import ROOT


@pytest.fixture
def odd(place):
    """`odd(**options)`: an agent that the scripted one answers for."""
    make_known(place.home)

    def odd(**options):
        env = {**place.env, "PYTHONPATH": str(ROOT)}
        return Agent(**{"agent": "odd", "cwd": place.cwd, "env": env, **options})

    return odd


async def test_another_agent_answers_and_remembers_until_the_block_ends(odd):
    async with odd() as agent:
        assert (await agent.run("hello there")).text == "hello there "
        assert (await agent.run("again")).text == "again "
        assert odd_processes()
    assert not odd_processes()


async def test_the_program_decides_what_it_asks_about(odd, place):
    asked = []

    async def decide(name, args, context):
        del context
        asked.append((name, args["command"]))
        return Allow() if args["command"].endswith("good") else Deny("not that")

    result = await odd(can_use_tool=decide).run(f"ask:{place.cwd}/good ask:{place.cwd}/bad")
    assert asked == [("execute", f"{place.cwd}/good"), ("execute", f"{place.cwd}/bad")]
    assert [path.name for path in place.cwd.iterdir()] == ["good"]
    assert [call.is_error for call in result.calls] == [False, True]


async def test_its_crash_ends_the_run_with_the_reason(odd):
    with pytest.raises(RunError, match="Odd exited with code 7: fatal: out of ideas"):
        await odd().run("die")


async def test_it_does_not_go_on_with_a_conversation_that_has_ended(odd):
    agent = odd()
    await agent.run("hello")
    with pytest.raises(OptionError, match="odd keeps its conversation itself"):
        await agent.run("again")
    with pytest.raises(OptionError, match="odd keeps its conversation itself"):
        await agent.fork().run("again")


async def test_guards_which_do_not_see_its_calls_are_refused(odd):
    agent = odd()
    agent.guard(lambda *_: None)
    with pytest.raises(OptionError, match="guards do not see them"):
        await agent.run("hello")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"agent": "nobody"}, 'there is no adapter "nobody"; there are claude'),
        ({"model": "gpt-5.5"}, "odd runs the turns of this session; leave out a model"),
        ({"builtin_tools": ["read"]}, "odd runs the turns of this session; leave out a list of tools"),
        ({"reasoning": "high"}, "leave out a reasoning effort"),
    ],
)
async def test_what_only_zot_has_is_refused(odd, options, sentence):
    with pytest.raises(OptionError, match=sentence):
        await odd(**options).run("hello")


def test_it_cannot_be_given_functions(odd):
    @tool
    def weather() -> str:
        """Say how it is outside."""
        return "odd"

    with pytest.raises(OptionError, match="tools: odd has its own tools"):
        odd(tools=[weather])
