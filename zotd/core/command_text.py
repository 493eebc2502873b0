"""What a slash command's file becomes with the arguments that were typed.

Fix issue $1 of $ARGUMENTS.       `$1` to `$9`: one argument; `$ARGUMENTS`: all of them, as typed
Changes: !`git diff $1`           a shell command, to be run before the model reads the rest
"""

import re
import shlex
from collections.abc import Sequence

from msgspec import Struct

_PLACE = re.compile(r"\$(?:ARGUMENTS\b|([1-9])(?!\d))")
SHELL_RUN = re.compile(r"(?:^|(?<=[\s(]))!`([^`\n]+)`", re.MULTILINE)
"""A shell command in a text. Behind a word, a `!` is punctuation."""

_PLAIN = re.compile(r"[\w@%+=:,./-]*")
"""Arguments that a shell takes for what they are, with and without quotes around them."""

MAX_RUNS = 20
"""Most shell commands of one file."""


class CommandTextError(Exception):
    """The command cannot be used with these arguments; the message continues its name."""


class ExpandedCommand(Struct, frozen=True):
    """A prompt, and the shell commands whose output it refers to."""

    prompt: str
    shell: Sequence[str] = ()


def expanded(text: str, args: str) -> ExpandedCommand:
    """Put the arguments into the text of a command. Without a place for them, they follow the text.

    Raises:
        CommandTextError: an argument would be part of a shell command and is no plain word, there are too many shell
            commands, or nothing is left to send.
    """
    words, runs = _words(args), list(dict.fromkeys(found[1].strip() for found in SHELL_RUN.finditer(text)))
    if len(runs) > MAX_RUNS:
        raise CommandTextError(f"has {len(runs)} shell commands; at most {MAX_RUNS} are run")
    shell = [_filled(run, words, args) for run in runs]
    named = SHELL_RUN.sub(lambda found: f"(output of `{found[1].strip()}`: see the call below)", text)
    # In one pass: what was typed is not searched for places.
    prompt = _PLACE.sub(lambda place: args if place[1] is None else _word(words, place), named).strip()
    if args and not _PLACE.search(text):
        prompt = f"{prompt}\n\n{args}"
    if not prompt.strip():
        raise CommandTextError("is empty")
    return ExpandedCommand(prompt, shell)


def _words(args: str) -> list[str]:
    try:
        return shlex.split(args)
    except ValueError:  # a quotation without an end, such as an apostrophe
        return args.split()


def _word(words: Sequence[str], place: "re.Match[str]") -> str:
    at = int(place[1]) - 1
    return words[at] if at < len(words) else ""


def _filled(run: str, words: Sequence[str], args: str) -> str:
    """Put arguments into a shell command, unless the shell could take them for something else."""

    def value(place: "re.Match[str]") -> str:
        used = words if place[1] is None else [_word(words, place)]
        if not all(map(_PLAIN.fullmatch, used)):
            raise CommandTextError(
                f'puts "{args[:80]}" into the shell command `{run[:200]}`, '
                "which takes only words of letters, digits and _@%+=:,./-"
            )
        return " ".join(used)

    return _PLACE.sub(value, run)
