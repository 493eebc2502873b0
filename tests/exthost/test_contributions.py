from zotd.exthost.contributions import (
    INSTRUCTIONS_CHARS,
    MAX_BYTES,
    MAX_MENTIONS,
    MAX_REGISTRATIONS,
    MENTION_CHARS,
    Registrations,
)
from zotd.wire import ext


def test_a_registration_replaces_an_earlier_one_of_its_name():
    registrations = Registrations()
    assert registrations.take(ext.RegisterTool("t", "old")) is None
    assert registrations.take(ext.RegisterTool("t", "new")) is None
    assert registrations.tools["t"].description == "new"


def test_a_tool_that_is_mended_is_not_complained_about_any_more():
    registrations = Registrations()
    assert "unknown exposure" in (registrations.take(ext.RegisterTool("t", exposure="?")) or "")
    assert list(registrations.refused) == ['tool "t"']
    assert registrations.take(ext.RegisterTool("t")) is None
    assert registrations.refused == {}


def test_subscriptions_add_up():
    registrations = Registrations()
    registrations.take(ext.Subscribe(("a",), ("tool_call",)))
    assert registrations.take(ext.Subscribe(("b",), ("turn_start",))) is None
    assert registrations.events == {"a", "b"}
    assert registrations.intercepts == {"tool_call", "turn_start"}
    assert registrations.take(ext.Subscribe((), ("rain", "tool_call"))) == "these events cannot be intercepted: rain"


def test_a_withdrawn_registration_is_gone_and_channels_are_unknown_here():
    registrations = Registrations()
    registrations.take(ext.RegisterTool("t"))
    registrations.take(ext.RegisterCommand("c"))
    for kind, name in (("tool", "t"), ("command", "c"), ("tool", "t"), ("channel", "x"), ("planet", "x")):
        assert registrations.take(ext.Unregister(kind, name)) is None
    assert (registrations.tools, registrations.commands) == ({}, {})


def test_instructions_are_replaced_and_have_nothing_invisible():
    registrations = Registrations()
    registrations.take(ext.Instructions("old"))
    assert registrations.take(ext.Instructions(" new\x1b[2J\u202e\n")) is None
    assert registrations.instructions == "new^[[2J<U+202E>"
    assert ext.Instructions(registrations.instructions) in registrations.frames()
    registrations.take(ext.Instructions(""))
    assert registrations.frames() == [ext.Subscribe()]


def test_instructions_that_are_too_long_are_cut_and_complained_about():
    registrations = Registrations()
    assert registrations.take(ext.Instructions("x" * 9_000)) == "of the instructions, 8,000 characters are used"
    assert len(registrations.instructions) == INSTRUCTIONS_CHARS


def test_mentions_are_replaced_and_those_that_cannot_be_typed_are_left_out():
    registrations = Registrations()
    usable = ext.Mention("docs:file:///a.md", "The\n\x1b[2Jfirst")
    others = [ext.Mention(text) for text in ("", "two words", 'a"quote', "hidden\u202e", "x" * (MENTION_CHARS + 1))]
    assert registrations.take(ext.Mentions((*others, usable))) is None
    (kept,) = registrations.mentions
    assert (kept.text, kept.detail.isprintable()) == ("docs:file:///a.md", True)
    assert ext.Mentions((kept,)) in registrations.frames()
    many = tuple(ext.Mention(str(number)) for number in range(MAX_MENTIONS + 1))
    assert registrations.take(ext.Mentions(many)) == "of the mentions, 500 are used"
    assert len(registrations.mentions) == MAX_MENTIONS
    registrations.take(ext.Mentions())
    assert registrations.frames() == [ext.Subscribe()]


def test_there_is_an_end_to_everything():
    registrations = Registrations()
    for number in range(MAX_REGISTRATIONS + 2):
        registrations.take(ext.RegisterTool(f"t{number}"))
        registrations.take(ext.RegisterCommand(f"c{number}"))
        registrations.take(ext.Subscribe((f"e{number}",)))
    assert len(registrations.tools) == len(registrations.commands) == len(registrations.events) == MAX_REGISTRATIONS
    assert registrations.take(ext.RegisterTool("t0", "new")) is None


def test_all_tools_and_commands_together_have_an_end():
    registrations = Registrations()
    half = "x" * (MAX_BYTES // 2)
    registrations.take(ext.RegisterTool("t", half))
    assert "would exceed 8 MiB" in (registrations.take(ext.RegisterCommand("c", half)) or "")
    assert registrations.take(ext.RegisterTool("t", half + "y")) is None
    registrations.take(ext.Unregister("tool", "t"))
    assert registrations.take(ext.RegisterCommand("c", half)) is None
    assert registrations.refused == {}


def test_a_subscription_holds_no_more_than_names_of_events():
    registrations = Registrations()
    registrations.take(ext.Subscribe(("x" * 1000, *map(str, range(3 * MAX_REGISTRATIONS)))))
    assert len(registrations.events) == MAX_REGISTRATIONS
    assert max(map(len, registrations.events)) < 10
