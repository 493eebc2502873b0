"""A chat of plain lines, for every terminal and for screen readers.

At the prompt it also shows what other clients do. Ctrl-C aborts a run, and leaves at the prompt, as Ctrl-D does. A line
typed during a run joins it before its next step. If the daemon dies, the chat restarts it.
"""

import os
import shlex
import signal
import sys
import termios
from collections.abc import Callable, Collection, Iterator, Sequence

from zotd.client import choosing, colour, slash
from zotd.client.blocking import Connection, Json
from zotd.client.errors import ClientError, ConnectionLostError, NoAnswerError
from zotd.client.fields import child, children, strings, text
from zotd.client.interrupts import InterruptedBySignal, OutputLostError, Watch
from zotd.client.options import environment, open_session, parser
from zotd.client.plain import Plain
from zotd.client.running import go_on
from zotd.client.yolo_warning import warn_of_yolo
from zotd.sanitize import harmless
from zotd.wire import slash_lines
from zottui.plain.deciding import PendingCalls
from zottui.plain.door import Again, ChatConnection, Variables
from zottui.plain.following import HELD, QUEUE, STEER, Line, RunPrinter, meanwhile
from zottui.plain.help import command_lines
from zottui.plain.leaving import LeaveChat, leaving_on_signals
from zottui.plain.output import Output
from zottui.plain.segments import Segments

PROMPT = "> "

READ_BYTES = 64 * 1024

SENT_S = 5.0
"""Seconds to wait for an event that the daemon sends right after the answer to a command."""

KEYBOARD = 0
"""File descriptor of the user's input."""


def run(argv: Sequence[str]) -> int:
    """Chat until the user leaves and return the exit code."""
    args = parser().parse_args(argv)
    watch = Watch()
    try:
        with ChatConnection(os.environ, watch.wait) as door:
            connection = door.open()
            session = open_session(connection, args, os.environ)
            warn_of_yolo(session, is_asked_for=args.mode == "yolo", env=os.environ)
            has_colours = not args.no_color and colour.is_wanted(sys.stdout.fileno(), os.environ)
            plain = Plain(has_colours=has_colours, names_roles=True)
            env = environment(args, os.environ)
            with watch:
                chat = PlainChat(connection, watch, session, plain=plain, env=env, again=door.again)
                chat.talk(" ".join(args.prompt), goes_on=args.go_on)
    except ClientError as error:
        sys.stderr.write(f"zot: {harmless(str(error))}\n")
        return 1
    except (KeyboardInterrupt, InterruptedBySignal):
        return 130
    except (OSError, OutputLostError):  # the terminal is gone; the session continues in the daemon
        return 1
    return 0


class PlainChat:
    """A chat with one session at a time."""

    def __init__(
        self, connection: Connection, watch: Watch, session: Json, *, plain: Plain, env: Variables, again: Again
    ) -> None:
        """`session` is attached on `connection`, which waits with `watch`. `env` is the environment of new sessions."""
        self._watch = watch
        self._output = Output(watch)
        self._again = again
        self._plain = plain
        self._env = env
        self._typed = b""
        self._session = session
        self._segments = Segments()
        # Text that an extension wanted to put into an editor; an empty line sends it.
        self._suggestion = ""
        self._asked_for_trust = False
        self._use(connection)

    @property
    def _id(self) -> str:
        return text(self._session, "id")

    def talk(self, first: str, *, goes_on: bool) -> None:
        """Take lines until the user leaves, after `first` if it is not empty; `goes_on`: continue a held session before."""
        self._introduce()
        try:
            if first and goes_on and self._session.get("state") == "held":
                self._take("/continue")
            if first:
                self._take(first)
            for line in self._lines():
                self._take(line)
        except LeaveChat:
            pass
        if self._session.get("ephemeral") is not True:
            self._say(f"the session is kept; return with: zot --session {self._id}")

    def _use(self, connection: Connection) -> None:
        self._connection = connection
        self._questions = PendingCalls(connection, ask=self._ask, say=self._say_apart)
        self._follower = RunPrinter(connection, typed=self._typed_meanwhile, show=self._shown, say=self._say_apart)

    def _come_back(self) -> None:
        """Reconnect to the same session after the connection is lost; leave if the daemon was stopped."""
        self._say_apart("(lost the connection to zotd; reconnecting)")
        try:
            connection, session = self._again(self._id, self._env)
        except ClientError as error:
            self._say(f"({error})")
            raise LeaveChat from error
        self._session |= session
        self._use(connection)
        self._say("(reconnected)")
        if session.get("state") == "held":
            self._say(HELD)
        self._questions.load(self._id)

    def _introduce(self) -> None:
        session = self._session
        self._say(f"{text(session, 'provider')} {text(session, 'model')} in {text(session, 'cwd')} (/help)")
        extensions = children(self._connection.call("ext.list", session=self._id), "extensions")
        untrusted = [text(one, "name") for one in extensions if one.get("state") == "untrusted"]
        if untrusted:
            self._write(self._ask_for_trust(untrusted))
        if session.get("state") == "held":
            self._say(HELD)
        self._questions.load(self._id)

    def _take(self, line: str) -> None:
        line = line.strip() or self._suggestion
        if not line:
            return
        self._suggestion = ""
        self._segments.typed()
        command = slash_lines.parsed(line)
        try:
            if command is None:
                self._follower.prompt(self._id, slash_lines.unescaped(line))
            elif f"/{command[0]}" in COMMANDS:
                COMMANDS[f"/{command[0]}"][1](self, command[1])
            else:
                self._invoke(*command)
        except ClientError as error:
            self._write(self._plain.text({"type": "error", "message": str(error)}))

    def _invoke(self, name: str, args: str) -> None:
        """Run a command of the daemon or of an extension and show its result."""
        try:
            answer, run = slash.invoke(self._connection, self._id, name, args)
            if run is None:
                self._show_up_to(_SHOWS.get(text(answer, "action"), ()) if "extension" in answer else ())
        except InterruptedBySignal as interruption:
            if interruption.number != signal.SIGINT:
                raise
            self._say(f"\n(stopped waiting for /{name})")
            return
        if run is not None:
            self._follower.follow(self._id, run)
            self._write(self._plain.end())
        elif "extension" not in answer and "text" in answer:
            self._say(text(answer, "text"))

    def _show_up_to(self, kinds: Collection[str]) -> None:
        """Show events up to the first one of these types, which the daemon has already sent."""
        events = self._connection.lines(SENT_S) if kinds else ()
        for _, event in events:
            if event.get("session") in {self._id, None}:
                self._write(self._words(event))
            if event.get("type") in kinds:
                return

    # --- commands -------------------------------------------------------------------------------------------------

    def help(self, _: str) -> None:
        """List the commands."""
        for line in command_lines(self._connection, self._id, {name: what for name, (what, _) in COMMANDS.items()}):
            self._say(line)

    def leave(self, _: str) -> None:
        """End the chat; the session continues in the daemon."""
        raise LeaveChat

    def new(self, _: str) -> None:
        """Start a session in the same directory."""
        options = {"cwd": text(self._session, "cwd"), "discard_unused": True}
        created = self._connection.call("session.create", options, env=self._env)
        self._session = child(created, "session")
        self._connection.call("attach", session=self._id, after={name: created.get(name) for name in ("epoch", "seq")})
        self._segments = Segments()
        self._introduce()

    def sessions(self, _: str) -> None:
        """List the sessions of this directory."""
        for session in choosing.sessions(self._connection, text(self._session, "cwd")):
            here = "*" if text(session, "id") == self._id else " "
            self._say(f"{here} {text(session, 'id')} {text(session, 'state'):8} {text(session, 'name')}")

    def compact(self, instructions: str) -> None:
        """Compact the transcript; `instructions` say what to keep."""
        _, run = slash.invoke(self._connection, self._id, "compact", instructions)  # another agent may have its own
        assert run is not None, "an answer without a run"
        self._follower.follow(self._id, run)

    def by_the_way(self, question: str) -> None:
        """Ask something beside the conversation."""
        self._say(slash.by_the_way(self._connection, self._id, question))

    def go_on(self, _: str) -> None:
        """Continue a run that stopped."""
        self._follower.follow(self._id, go_on(self._connection, self._id))

    def steer(self, line: str) -> None:
        """Send a line into the current run, also into another client's."""
        if line:
            self._follower.prompt(self._id, line, STEER)

    def wait(self, line: str) -> None:
        """Queue a line for after the current run."""
        if line:
            self._follower.prompt(self._id, line, QUEUE)

    def reload(self, name: str) -> None:
        """Restart all extensions, or one."""
        self._invoke("reload-ext", name)

    def clear(self, _: str) -> None:
        """Empty the model's context."""
        self._connection.call("clear", session=self._id)
        self._say("the model's context is empty")

    def model(self, name: str) -> None:
        """Show or switch the model."""
        if name:
            self._connection.call("set_model", session=self._id, model=name)
        self._say(text(self._connection.call("get_state", session=self._id), "model"))

    def mode(self, name: str) -> None:
        """Show or set the approval mode."""
        if name:
            self._connection.call("set_mode", session=self._id, mode=name)
        self._say(text(self._connection.call("session.get", session=self._id), "mode"))

    # --- extensions -----------------------------------------------------------------------------------------------

    def _ask_for_trust(self, items: Sequence[str]) -> str:
        """Return a note, once, that the directory has untrusted extensions; else an empty text."""
        if self._asked_for_trust:
            return ""
        self._asked_for_trust = True
        grant = f"zotctl trust grant {shlex.quote(text(self._session, 'cwd'))}"
        return harmless(f"this directory is not trusted, so zot ignores: {', '.join(items)}; to review: {grant}\n")

    # --- terminal -------------------------------------------------------------------------------------------------

    def _lines(self) -> Iterator[str]:
        """Yield the lines that the user types; shows events in between."""
        while True:
            try:
                with leaving_on_signals():
                    line = self._read_line()
            except ConnectionLostError:
                self._come_back()
                continue
            yield line

    def _read_line(self) -> str:
        self._show_waiting()
        self._questions.settle()
        self._write(PROMPT)
        while b"\n" not in self._typed:
            ready = self._watch.wait_any([KEYBOARD, self._connection.fileno()])
            if self._connection.fileno() in ready and (self._show_waiting("\n") or self._questions.are_open):
                self._questions.settle()
                self._write(PROMPT)
            elif KEYBOARD in ready:
                self._type()
        return self._typed_line()

    def _ask(self, prompt: str, is_over: Callable[[], bool]) -> str | None:
        """Return the next line typed from now on; None if `is_over` becomes true first."""
        before, self._typed = self._typed, b""
        if os.isatty(KEYBOARD):  # input typed before the question appeared is no answer to it
            termios.tcflush(KEYBOARD, termios.TCIFLUSH)
        self._write(self._plain.end() + prompt)
        try:
            while b"\n" not in self._typed:
                ready = self._watch.wait_any([KEYBOARD, self._connection.fileno()])
                if KEYBOARD in ready:
                    self._type()
                elif is_over():
                    self._write("\n")
                    return None
            return self._typed_line()
        finally:
            self._typed = before

    def _typed_meanwhile(self) -> list[Line]:
        """Wait for the daemon or the user; return the lines typed so far, up to the next command."""
        if KEYBOARD in self._output.wait_any([KEYBOARD, self._connection.fileno()]):
            self._type()
        lines: list[Line] = []
        while b"\n" in self._typed:
            line = meanwhile(self._typed.partition(b"\n")[0].decode(errors="replace").strip())
            if line is None:
                break
            self._typed_line()
            lines += [line] if line[0] else []
        return lines

    def _type(self) -> None:
        data = os.read(KEYBOARD, READ_BYTES)
        if not data:  # end of input: Ctrl-D, or the end of a pipe
            raise LeaveChat
        self._typed += data

    def _typed_line(self) -> str:
        self._output.silence_begins()
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode(errors="replace")

    def _show_waiting(self, before: str = "") -> bool:
        """Show events that have arrived, after `before`, without waiting; return whether anything was shown."""
        shown = ""
        try:
            for _, event in self._connection.lines(0):
                if event.get("session") in {self._id, None}:
                    shown += self._words(event)
        except NoAnswerError:
            shown += self._plain.end()
        shown += "".join(harmless(f"{line}\n") for line in self._segments.due())
        self._write(f"{before}{shown}" if shown else "")
        return bool(shown)

    def _words(self, event: Json) -> str:
        """Return the text for an event. Handles those that need this chat's state; the plain renderer does the others."""
        match event.get("type"):
            case "ext_status":
                self._segments.take(event)
            case "approval_requested":
                self._questions.see(event)  # shown when it is asked
            case "trust_required" if text(event, "cwd") == text(self._session, "cwd"):
                return self._ask_for_trust(strings(event, "items"))
            case "notice" if self._asked_for_trust and "zotctl trust grant" in text(event, "text"):
                pass  # the run repeats this note for clients that have not seen it
            case "ext_insert":
                self._suggestion = harmless(text(event, "text"))
                return f"{self._plain.text(event)}(Enter sends it, typing another line discards it)\n"
            case _:
                self._questions.see(event)
                return self._plain.text(event)
        return ""

    def _shown(self, event: Json) -> None:
        """Show an event of a run and ask about pending approvals."""
        self._write(self._words(event))
        self._questions.settle()

    def _say(self, words: str) -> None:
        self._write(f"{harmless(words)}\n")

    def _say_apart(self, words: str) -> None:
        """Print on a new line, even in the middle of a reply."""
        self._write(self._plain.end())
        self._say(words)

    def _write(self, words: str) -> None:
        self._output.write(words)


# Events to wait for, by the action of an extension's command. A panel may also be refused with a note.
_SHOWS = {"display": ("ext_display",), "insert": ("ext_insert",), "open_panel": ("ext_panel", "ext_notify")}

COMMANDS: dict[str, tuple[str, Callable[[PlainChat, str], None]]] = {
    "/help": ("list the commands", PlainChat.help),
    "/new": ("start a new session", PlainChat.new),
    "/sessions": ("list the sessions of this directory", PlainChat.sessions),
    "/continue": ("continue a run that stopped", PlainChat.go_on),
    "/steer": ("send TEXT into the current run, as any line typed during a run: /steer TEXT", PlainChat.steer),
    "/queue": ("send TEXT when the current run ends: /queue TEXT", PlainChat.wait),
    "/compact": ("summarise the conversation for the model", PlainChat.compact),
    "/btw": ("ask something beside the conversation, which stays as it is: /btw QUESTION", PlainChat.by_the_way),
    "/clear": ("empty the model's context", PlainChat.clear),
    "/model": ("show or switch the model: /model NAME", PlainChat.model),
    "/mode": ("show or set which calls need your approval: /mode yolo, workspace, ask or read-only", PlainChat.mode),
    "/reload-ext": ("restart the extensions, or one: /reload-ext NAME", PlainChat.reload),
    "/exit": ("leave; the session is kept", PlainChat.leave),
}
"""Slash commands by name; `/help` and dispatch read this table."""
