"""Lines that begin with a slash: in a chat, on a command line, and as the prompt of a timer.

/todo add milk     a command: `todo` with `add milk`
//todo             a prompt: `/todo`
/usr/bin is full   a prompt, because names of commands contain no slash
"""


def parsed(line: str) -> tuple[str, str] | None:
    """Return the name without the slash, and the arguments; None if the line is a prompt."""
    name, *args = line.split(maxsplit=1) or [""]
    if not name.startswith("/") or "/" in name[1:]:
        return None
    return name[1:], "".join(args)


def unescaped(line: str) -> str:
    """Return the prompt for a line that is no command."""
    return line[1:] if line.startswith("//") else line
