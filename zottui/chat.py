"""A chat in plain lines: type, read, type. Works in every terminal and with screen readers.

Between prompts it shows what others do in the session. Ctrl-C ends a run; at the prompt, like Ctrl-D, it leaves, and
says how to come back. Leaving ends nothing.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from zotd import paths
from zotd.client import choosing
from zotd.client.autostart import ensure
from zotd.client.blocking import Connection, Json
from zotd.client.environment import shared
from zotd.client.errors import ClientError, NoAnswerError
from zotd.client.fields import child, maybe_text, text
from zotd.client.interrupts import InterruptedBySignal, OutputLostError, Watch
from zotd.client.options import hello, open_session, parser
from zotd.client.plain import Plain, harmless
from zotd.client.running import follow, start
from zotd.client.runs import Run

PROMPT = "> "

READ_BYTES = 64 * 1024

KEYBOARD = 0
"""The descriptor that lines are typed on."""


def run(argv: Sequence[str]) -> int:
    """Chat until the user leaves; the exit code."""
    args = parser().parse_args(argv)
    watch = Watch()
    try:
        sock = ensure(paths.socket_path(os.environ), os.environ)
        with Connection(sock, watch.wait) as connection:
            hello(connection, "zot")
            session = open_session(connection, args, os.environ)
            with watch:
                Chat(connection, watch, session).talk(" ".join(args.prompt))
    except ClientError as error:
        sys.stderr.write(f"zot: {error}\n")
        return 1
    except (KeyboardInterrupt, InterruptedBySignal):
        return 130
    except (OSError, OutputLostError):  # the terminal is gone; the session is not
        return 1
    return 0


class Leave(Exception):  # noqa: N818  (not an error: the user wants to go)
    """The chat is over."""


class Chat:
    """One conversation on one terminal."""

    def __init__(self, connection: Connection, watch: Watch, session: Json) -> None:
        """`session`: attached on `connection`, whose wait is `watch`."""
        self._connection = connection
        self._watch = watch
        self._plain = Plain()
        self._typed = b""
        self._session = session

    @property
    def _id(self) -> str:
        return text(self._session, "id")

    def talk(self, first: str) -> None:
        """Take lines until the user leaves; `first`, if any, is the first of them."""
        self._introduce()
        try:
            if first:
                self._take(first)
            for line in self._lines():
                self._take(line)
        except Leave:
            pass
        if self._session.get("ephemeral") is not True:
            self._say(f"the session stays; come back with: zot --session {self._id}")

    def _introduce(self) -> None:
        session = self._session
        self._say(f"{text(session, 'provider')} {text(session, 'model')} in {text(session, 'cwd')} (/help)")

    def _take(self, line: str) -> None:
        name, _, rest = line.strip().partition(" ")
        if not name:
            return
        try:
            if name in COMMANDS:
                COMMANDS[name][1](self, rest.strip())
            elif name.startswith("/"):
                self._say(f"there is no {name}; /help lists commands")
            else:
                self._prompt(line.strip())
        except ClientError as error:
            self._say(f"error: {error}")

    def _prompt(self, line: str) -> None:
        run = start(self._connection, self._id, line)
        follow(self._connection, self._id, run, self._show)
        self._write(self._plain.end())

    # --- commands -------------------------------------------------------------------------------------------------

    def help(self, _: str) -> None:
        """List the commands."""
        for name, (what, _work) in COMMANDS.items():
            self._say(f"{name:10} {what}")

    def leave(self, _: str) -> None:
        """End the chat, and nothing else."""
        raise Leave

    def new(self, _: str) -> None:
        """Go on in a new session of the same directory."""
        created = self._connection.call("session.create", cwd=text(self._session, "cwd"), env=shared(os.environ))
        self._session = child(created, "session")
        after = {"epoch": created.get("epoch"), "seq": created.get("seq")}
        self._connection.call("attach", session=self._id, after=after)
        self._introduce()

    def sessions(self, _: str) -> None:
        """List the sessions of this directory."""
        for session in choosing.sessions(self._connection, text(self._session, "cwd")):
            here = "*" if text(session, "id") == self._id else " "
            self._say(f"{here} {text(session, 'id')} {text(session, 'state'):8} {text(session, 'name')}")

    def compact(self, instructions: str) -> None:
        """Summarise the transcript."""
        started = self._connection.call("compact", session=self._id, instructions=instructions or None)
        run = Run(None, maybe_text(started, "run"), starts_now=True)
        follow(self._connection, self._id, run, self._show)

    def clear(self, _: str) -> None:
        """Start the transcript anew."""
        self._connection.call("clear", session=self._id)
        self._say("the model has forgotten everything")

    def model(self, name: str) -> None:
        """Show the model, or switch it."""
        if name:
            self._connection.call("set_model", session=self._id, model=name)
        self._say(text(self._connection.call("get_state", session=self._id), "model"))

    # --- terminal -------------------------------------------------------------------------------------------------

    def _lines(self) -> Iterator[str]:
        """What the user types; shows events in between."""
        while True:
            with _leaving_on_signals():
                line = self._read_line()
            yield line

    def _read_line(self) -> str:
        self._write(PROMPT)
        while b"\n" not in self._typed:
            ready = self._watch.wait_any([KEYBOARD, self._connection.fileno()])
            if self._connection.fileno() in ready and self._show_waiting():
                self._write(PROMPT)
            if KEYBOARD in ready:
                data = os.read(KEYBOARD, READ_BYTES)
                if not data:
                    raise Leave
                self._typed += data
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode(errors="replace")

    def _show_waiting(self) -> bool:
        """Show what has come, without waiting for more; whether that was anything to see."""
        seen = False
        try:
            for _, event in self._connection.lines(0):
                words = self._plain.text(event) if event.get("session") == self._id else ""
                if words:
                    self._write(words if seen else f"\n{words}")
                    seen = True
        except NoAnswerError:
            self._write(self._plain.end())
        return seen

    def _show(self, _: bytes, event: Json) -> None:
        if event.get("type") != "user_message":  # it stands there already
            self._write(self._plain.text(event))

    def _say(self, words: str) -> None:
        self._write(f"{harmless(words)}\n")

    def _write(self, words: str) -> None:
        if words:
            sys.stdout.write(words)
            sys.stdout.flush()


@contextmanager
def _leaving_on_signals() -> Iterator[None]:
    """At the prompt Ctrl-C leaves, and so do the other signals."""
    try:
        yield
    except InterruptedBySignal as interruption:
        sys.stdout.write("\n")
        raise Leave from interruption


COMMANDS: dict[str, tuple[str, Callable[[Chat, str], None]]] = {
    "/help": ("this list", Chat.help),
    "/new": ("go on in a new session", Chat.new),
    "/sessions": ("list the sessions of this directory", Chat.sessions),
    "/compact": ("summarise what was said", Chat.compact),
    "/clear": ("forget what was said", Chat.clear),
    "/model": ("show or switch the model: /model NAME", Chat.model),
    "/exit": ("leave; the session stays", Chat.leave),
}
"""What a line may begin with; help and dispatch read this."""
