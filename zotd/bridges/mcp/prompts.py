"""A server's prompts as slash commands: `/SERVER:PROMPT one two three`."""

import re
from collections.abc import Iterable, Mapping, Sequence

from mcp.types import GetPromptResult, Prompt

from zotd.bridges.mcp.names import distinct
from zotd.bridges.mcp.results import words_of
from zotd.sdk.pipe import Frame

DESCRIPTION_CHARS = 500
"""Longest description of a command."""

_WORD = re.compile(r'(?:"([^"]*)"|(\S*))(?:\s+|$)')
"""An argument: in double quotes, or without blanks. Not as a shell has it: most of these are sentences with apostrophes."""


class MissingArgumentError(ValueError):
    """The arguments of a command do not fit its prompt; the message is a sentence for the user."""


def command_names(server: str, prompts: Iterable[str]) -> Mapping[str, str]:
    """Map the names of prompts to those of commands, without the slash: one word of visible characters each."""

    def usable(prompt: str) -> str:
        return "".join("_" if char == "/" or char.isspace() or not char.isprintable() else char for char in prompt)

    return distinct(prompts, lambda prompt: f"{server}:{usable(prompt)}", fold=str.casefold)


def registration(name: str, prompt: Prompt) -> Frame:
    """Build the frame `register_command`; the description ends with the names of the arguments."""
    about = " ".join((prompt.description or prompt.title or "").split())
    usage = _usage(prompt)
    description = " ".join(filter(None, (about[: DESCRIPTION_CHARS - len(usage)], usage)))
    return {"type": "register_command", "name": name, "description": description[:DESCRIPTION_CHARS]}


def arguments(name: str, prompt: Prompt, line: str) -> dict[str, str]:
    """Read the arguments of a command line, as `docs/mcp.md` describes them.

    Raises:
        MissingArgumentError: one that the prompt needs is missing.
    """
    left = [argument.name for argument in prompt.arguments or ()]
    found: dict[str, str] = {}
    line = line.strip()
    while line and left:
        wanted, separator, value = line.partition("=")
        if separator and wanted in left:
            line = value
        else:
            wanted = left[0]
        left.remove(wanted)
        word = _WORD.match(line)
        assert word is not None  # it matches any text
        if not left and word.end() < len(line):  # the last one has the rest of the line
            found[wanted], line = line, ""
        else:
            found[wanted], line = word[1] if word[1] is not None else word[2], line[word.end() :]
    missing = [one.name for one in prompt.arguments or () if one.required and one.name not in found]
    if missing:
        raise MissingArgumentError(f"/{name} needs {', '.join(missing)}; write: /{name} {_usage(prompt)}")
    return found


def command_response(key: str, result: GetPromptResult, *, beside: str) -> Frame:
    """Build the answer to a `command_invoked`: the messages as one prompt, and `beside`, what the user wrote in addition.

    Roles are named only if there are several.
    """
    has_roles = len({message.role for message in result.messages}) > 1
    texts = [
        f"{message.role}:\n{words_of(message.content)}" if has_roles else words_of(message.content)
        for message in result.messages
    ]
    prompt = "\n\n".join(filter(None, (*texts, beside)))
    if not prompt:
        return command_error(key, "the MCP server's prompt is empty")
    return {"type": "command_response", "id": key, "action": "prompt", "prompt": prompt}


def command_error(key: str, sentence: str) -> Frame:
    """Build the answer to a command that has failed."""
    return {"type": "command_response", "id": key, "error": sentence}


def _usage(prompt: Prompt) -> str:
    """The arguments as help has them: `<path> [style]`."""
    named: Sequence[str] = [f"<{one.name}>" if one.required else f"[{one.name}]" for one in prompt.arguments or ()]
    return " ".join(named)
