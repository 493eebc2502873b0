"""`make demo`: an agent session in a real daemon, on a small model inside this machine. No key, no network.

Runs the commands that a person would type, in a home of its own that is gone afterwards: a prompt whose answer only a
tool can find, away and back, a restart of the daemon. Exit code 1, and a sentence why, unless the model called the tool,
its answer contains the word that this run has written into the file, and the session came back with that answer in it.
"""

import json
import os
import secrets
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

PROMPT = "Read the file secret.txt"

WORDS = """
    river candle mountain silver garden thunder pencil window orange bridge castle forest planet guitar marble ocean
    tiger velvet walnut pepper basket ladder anchor
""".split()  # noqa: SIM905  (a list of 23 lines would say no more)
"""None of them is in the example calls that the small model gets to see, and each is a word that it can spell."""

BIN = Path(sys.executable).parent

COMMAND_S = 180.0
"""Longest wait for one command. The slow one loads the model (5 s from a cold disk) and answers (2 s on two idle cores,
ten times as much when something else keeps them busy)."""

RED, GREEN, BOLD, DIM = 31, 32, 1, 2


class DemoFailedError(Exception):
    """What was promised did not happen; the message says what."""


def main() -> int:
    """Run the demo; the exit code."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="zot-demo-") as folder:
        terminal = Terminal(Path(folder))
        try:
            demo(terminal)
        except DemoFailedError as error:
            print(colour(RED, f"\nThe demo FAILED: {error}"), flush=True)
            return 1
        finally:
            list(terminal.lines("zotctl stop"))
    print(colour(GREEN, f"\nIt works: {time.monotonic() - begun:.0f} s, no key, no network."))
    return 0


def demo(terminal: "Terminal") -> None:
    """The session, from the prompt to its return."""
    word = secrets.choice(WORDS)
    (terminal.project / "secret.txt").write_text(word + "\n")
    terminal.note(f"secret.txt in an empty directory now holds a word of this run: {word}")

    terminal.note("A prompt starts the daemon, the daemon starts the model. Here is every event, in short:")
    answer = show_run(terminal.type(f"zot --json --provider local --tools read {shlex.quote(PROMPT)}"))
    if word not in answer:
        raise DemoFailedError(f"the answer should contain the word {word!r}, but it is {answer!r}")

    terminal.note("The program has gone, the session has not:")
    show(terminal.type("zotctl sessions"))

    terminal.note("Nor does it end with the daemon. Another daemon, the same session:")
    show(terminal.type("zotctl stop"))
    transcript = show(terminal.type("zotctl export --last --format markdown"))
    if answer.strip() not in transcript:
        raise DemoFailedError(f"the session that came back should contain {answer!r}, but it is {transcript!r}")


def show_run(events: Iterator[str]) -> str:
    """Show each event of a run as it comes; the text of the last reply.

    Raises:
        DemoFailedError: the run failed, or the model answered without calling the tool.
    """
    answer, results = "", 0
    for line in events:
        match json.loads(line):
            case {"type": "user_message", "content": [{"text": prompt}]}:
                print(f"  prompt       {prompt}")
            case {"type": "turn_start"}:
                answer = ""
            case {"type": "text_delta", "delta": text}:
                print(text if answer else f"  answer       {text}", end="", flush=True)
                answer += text
            case {"type": "tool_call", "name": name, "args": args}:
                print(f"  tool call    {name} {json.dumps(args)}", flush=True)
            case {"type": "tool_result", "content": [{"text": text}], "is_error": False}:
                print(f"  tool result  {text.strip()}", flush=True)
                results += 1
            case {"type": "assistant_message"} if answer:
                print()
            case {"type": "error", "message": message}:
                raise DemoFailedError(message)
            case _:
                pass
    if not results:
        raise DemoFailedError("the model answered without reading the file")
    return answer


def show(lines: Iterator[str]) -> str:
    """Show what a command prints; the same text."""
    shown = []
    for line in lines:
        print(f"  {line}", end="", flush=True)
        shown.append(line)
    return "".join(shown)


class Terminal:
    """Types commands in a directory, with a home, of its own."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ZOT", "NO_COLOR"))}
        path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
        self._env = {**inherited, "PATH": path, "ZOT_HOME": str(folder / "home"), "NO_COLOR": "1"}

    def note(self, text: str) -> None:
        """Say what comes next."""
        print("\n" + colour(DIM, text), flush=True)

    def type(self, command: str) -> Iterator[str]:
        """Show the command, run it, and give what it prints, line by line; then it must have succeeded.

        Raises:
            DemoFailedError: it failed.
        """
        print(colour(BOLD, f"$ {command}"), flush=True)
        yield from self.lines(command)

    def lines(self, command: str) -> Iterator[str]:
        """The same, unseen."""
        with subprocess.Popen(
            shlex.split(command),
            cwd=self.project,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            killer = threading.Timer(COMMAND_S, process.kill)
            killer.start()
            try:
                assert process.stdout
                yield from process.stdout
            finally:
                process.wait()
                killer.cancel()
        if process.returncode:
            raise DemoFailedError(f"`{command}` ended with exit code {process.returncode}")


def colour(code: int, text: str) -> str:
    """The text in a colour, on a terminal that wants it."""
    return f"\033[{code}m{text}\033[m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else text


if __name__ == "__main__":
    sys.exit(main())
