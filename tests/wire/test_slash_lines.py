import pytest

from zotd.wire.slash_lines import parsed, unescaped


@pytest.mark.parametrize(
    ("line", "command", "prompt"),
    [
        ("/todo add  milk\nand tea", ("todo", "add  milk\nand tea"), None),
        ("/todo", ("todo", ""), None),
        ("//todo", None, "/todo"),
        ("/usr/bin is full", None, "/usr/bin is full"),
        ("todo", None, "todo"),
        ("", None, ""),
    ],
)
def test_a_line_is_a_command_or_a_prompt(line, command, prompt):
    assert parsed(line) == command
    if command is None:
        assert unescaped(line) == prompt
