"""Prompts of servers as slash commands."""

import pytest
from mcp.types import Prompt, PromptArgument

from zotd.bridges.mcp.prompts import MissingArgumentError, arguments, command_names, registration


def prompt(*names, required=()):
    wanted = [PromptArgument(name=name, required=name in required) for name in names]
    return Prompt(name="review", description="Reviews\na file.", arguments=wanted)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", {}),
        ("a.py", {"path": "a.py"}),
        ("a.py kindly", {"path": "a.py", "style": "kindly"}),
        ("a.py don't be kind ", {"path": "a.py", "style": "don't be kind"}),
        ('"a b.py"  "very kindly"', {"path": "a b.py", "style": "very kindly"}),
        ("style=kindly a.py", {"style": "kindly", "path": "a.py"}),
        ('path="a b.py" style=very kindly', {"path": "a b.py", "style": "very kindly"}),
        ("x=1 y", {"path": "x=1", "style": "y"}),
        ('"unclosed quote', {"path": '"unclosed', "style": "quote"}),
        ("path= kindly", {"path": "", "style": "kindly"}),
        ('"a"b.py', {"path": '"a"b.py'}),
    ],
)
def test_arguments_are_words_or_named_and_the_last_one_has_the_rest(line, found):
    assert arguments("srv:review", prompt("path", "style"), line) == found


def test_a_missing_argument_is_named_with_the_usage():
    with pytest.raises(MissingArgumentError) as error:
        arguments("srv:review", prompt("path", "style", required=["path"]), "style=kindly")
    assert str(error.value) == "/srv:review needs path; write: /srv:review <path> [style]"


def test_a_description_is_one_line_and_ends_with_the_arguments():
    frame = registration("srv:review", prompt("path", "style", required=["path"]))
    assert frame["description"] == "Reviews a file. <path> [style]"


def test_names_are_single_words_and_different_from_each_other():
    names = list(command_names("srv", ["a b/c", "A_b c", "x" * 80]).values())
    assert names[0] == "srv:a_b_c"
    assert names[1].startswith("srv:A_b_c_")
    assert [len(name) for name in names] == [9, 16, 64]


def test_prompts_are_commands_that_become_prompts(sample):
    driver = sample()
    assert driver.tools["srv:review"]["description"] == "Reviews a file. <path> [style]"
    key = driver.request("command_invoked", name="srv:review", args="a.py")
    answer = driver.expect("command_response", id=key)
    assert (answer["action"], answer["prompt"]) == ("prompt", "Review a.py kindly.")
    key = driver.request("command_invoked", name="srv:second_thoughts", args="About the door?")
    assert driver.expect("command_response", id=key)["prompt"] == (
        "user:\nIs it good?\n\nassistant:\nIt is.\n\nuser:\nAre you sure?\n\nAbout the door?"
    )


def test_a_command_that_cannot_be_carried_out_says_why(sample):
    driver = sample()
    key = driver.request("command_invoked", name="srv:review", args="")
    assert driver.expect("command_response", id=key)["error"].startswith("/srv:review needs path; write: ")
    driver.call_tool("srv__rewrite")
    assert driver.expect("unregister") == {"type": "unregister", "kind": "command", "name": "srv:review"}
    key = driver.request("command_invoked", name="srv:review", args="a.py")
    assert driver.expect("command_response", id=key)["error"] == "the MCP server srv has no prompt srv:review now"
