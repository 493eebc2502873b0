"""An agent of others for tests: it speaks ACP on stdin and stdout, does what its prompts say, and can misbehave.

A prompt is a list of words, each an act of the turn, in order; `ACTS` has them. `ODD` in its environment changes how it starts.
Sessions and what was said in them are files in `$ODD_STORE`, if that is set; only then can it load them.

    python -m zotd.testing.odd_agent
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from zotd.testing.odd_choices import OddChoices

Json = dict[str, object]

FOREVER_S = 3600.0

FLOOD = 20_000
"""Updates of a flood; together they are longer than what may be held."""


class OddAgent:
    """The agent: one thread reads, one does what the prompt says."""

    def __init__(self) -> None:
        self._odd = os.environ.get("ODD", "")
        self._store = os.environ.get("ODD_STORE", "")
        self._lock = threading.Lock()
        self._answers: dict[int, Json] = {}
        self._answered = threading.Condition()
        self.cancelled = threading.Event()
        self.session = ""
        self.choices = OddChoices(self._odd)
        self._copied: list[str] = []
        """What was said before in a copy that is not stored yet."""
        self._opened = 0
        self._asked = 0

    def serve(self) -> None:
        """Answer until the input ends."""
        for line in sys.stdin:
            message = json.loads(line)
            if "method" in message:
                self._take(message)
            else:
                with self._answered:
                    self._answers[message["id"]] = message
                    self._answered.notify_all()
        if self._odd == "stubborn":
            time.sleep(FOREVER_S)
        os._exit(0)

    def _take(self, message: Json) -> None:
        params = message.get("params")
        assert isinstance(params, dict)
        match message["method"]:
            case "initialize":
                self._initialize(message)
            case "session/new":
                self._new(message)
            case "session/load":
                self._load(message, str(params["sessionId"]))
            case "session/set_mode":
                self._choose(message, "mode", str(params["modeId"]))
            case "session/set_config_option":
                self._choose(message, str(params["configId"]), str(params["value"]))
            case "session/fork":
                self._fork(message, str(params["sessionId"]))
            case "session/prompt":
                self.cancelled.clear()
                words = "".join(str(block.get("text", "")) for block in params["prompt"]).split()
                threading.Thread(target=self._turn, args=(message["id"], words), daemon=True).start()
            case "session/cancel":
                self.cancelled.set()
            case _:
                pass

    def _initialize(self, message: Json) -> None:
        if self._odd == "hang":
            return
        if self._odd == "junk":
            for number in range(1_000):
                self.write(f"Loading ... {number}")
        if self._odd == "dead":
            print("no such model: odd-1", file=sys.stderr)  # noqa: T201  (what a program prints before it gives up)
            os._exit(3)
        version = 99 if self._odd == "future" else 1
        abilities: Json = {"loadSession": bool(self._store)}
        if self._odd.startswith("fork"):
            abilities["sessionCapabilities"] = {"fork": {}}
        self._result(message, {"protocolVersion": version, "agentCapabilities": abilities, "authMethods": []})

    def _new(self, message: Json) -> None:
        if self._odd == "login":
            self.send({"id": message["id"], "error": {"code": -32000, "message": "Authentication required"}})
            return
        self._opened += 1
        self.session = f"odd-{os.getpid()}-{self._opened}"
        if self._odd == "early":
            _commands(self, "review")
        self._result(message, {"sessionId": self.session, **self.choices.fields()})

    def _load(self, message: Json, session: str) -> None:
        if self._odd == "forgetful":
            self.send({"id": message["id"], "error": {"code": -32603, "message": "no such session"}})
            return
        self.session = session
        for line in self.said():
            self.chunk(line, "user_message_chunk")
            self.chunk("as before")
        _commands(self, "loaded")
        self.update("current_mode_update", currentModeId=self.choices.mode)
        self._result(message, self.choices.fields())

    def _choose(self, message: Json, option: str, value: str) -> None:
        refused = self.choices.set(option, value)
        if refused:
            self.send({"id": message["id"], "error": {"code": -32602, "message": refused}})
        else:
            self._result(message, {"configOptions": self.choices.options()})

    def _fork(self, message: Json, session: str) -> None:
        """Copy what was said; or misbehave, as the word behind `fork-` says."""
        match self._odd:
            case "fork-dies":
                print("fatal: forks are out", file=sys.stderr, flush=True)  # noqa: T201
                os._exit(7)
            case "fork-refuses":
                self.send({"id": message["id"], "error": {"code": -32603, "message": "too large to copy"}})
            case "fork-hangs":
                (Path(self._store) / "asked").write_bytes(b"")  # a pipe, whose reader knows then
            case "fork-same":
                self._result(message, {"sessionId": session})
            case "fork-empty":
                self._result(message, {"sessionId": ""})
            case _:
                self._copied = self._said(session)  # and stored with the first prompt
                self.session = f"{session}-copy-{os.getpid()}"
                self._result(message, {"sessionId": self.session, **self.choices.fields()})

    def _turn(self, request: object, words: list[str]) -> None:
        self._remember(" ".join(words))
        stop = "end_turn"
        for word in words:
            act, _, detail = word.partition(":")
            ACTS.get(act, _say)(self, detail or word)
            if self.cancelled.is_set():
                stop = "cancelled"
                break
        usage = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
        self.send({"id": request, "result": {"stopReason": stop, "usage": usage}})
        if "twice" in words:
            self.send({"id": request, "result": {"stopReason": stop}})

    # --- the wire ---------------------------------------------------------------------------------------------

    def may(self, session: str, call: str, command: str) -> bool:
        """Ask for leave; True if it is given."""
        options = [
            {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
            {"optionId": "always", "name": "Always", "kind": "allow_always"},
            {"optionId": "no", "name": "Reject", "kind": "reject_once"},
        ]
        fields = {"toolCallId": call, "title": f"run {command}", "kind": "execute", "rawInput": {"command": command}}
        answer = self.request(
            "session/request_permission", {"sessionId": session, "toolCall": fields, "options": options}
        )
        result = answer.get("result")
        outcome = result.get("outcome") if isinstance(result, dict) else None
        return isinstance(outcome, dict) and outcome.get("optionId") == "yes"

    def request(self, method: str, params: Json) -> Json:
        """Send a request and return the answer."""
        self._asked += 1
        number = self._asked
        self.send({"id": number, "method": method, "params": params})
        with self._answered:
            self._answered.wait_for(lambda: number in self._answers)
            return self._answers.pop(number)

    def call(self, call: str, title: str, kind: str, raw: Json | None = None) -> None:
        """Announce a call that has begun."""
        self.update("tool_call", toolCallId=call, title=title, kind=kind, rawInput=raw or {}, status="in_progress")

    def chunk(self, text: str, kind: str = "agent_message_chunk") -> None:
        """Say a piece of text."""
        self.update(kind, content={"type": "text", "text": text})

    def update(self, kind: str, /, **fields: object) -> None:
        """Report about the session."""
        update = {"sessionUpdate": kind, **fields}
        self.send({"method": "session/update", "params": {"sessionId": self.session, "update": update}})

    def _result(self, message: Json, result: Json) -> None:
        self.send({"id": message["id"], "result": result})

    def send(self, message: Json) -> None:
        """Send a message."""
        self.write(json.dumps({"jsonrpc": "2.0", **message}))

    def write(self, line: str) -> None:
        """Write a line."""
        with self._lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    # --- what it remembers ------------------------------------------------------------------------------------

    def _remember(self, prompt: str) -> None:
        if self._store:
            with (Path(self._store) / self.session).open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in [*self._copied, prompt])
            self._copied = []

    def said(self) -> list[str]:
        """Return the prompts of the session so far."""
        return self._said(self.session)

    def _said(self, session: str) -> list[str]:
        path = Path(self._store or "/nonexistent") / session
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _say(agent: OddAgent, text: str) -> None:
    """Say a word."""
    agent.chunk(f"{text} ")


def _think(agent: OddAgent, text: str) -> None:
    """Think it."""
    agent.chunk(text, "agent_thought_chunk")


def _recall(agent: OddAgent, _: str) -> None:
    """Say what it was told before."""
    agent.chunk(" | ".join(agent.said()[:-1]) or "nothing")


def _write(agent: OddAgent, path: str) -> None:
    """Write a file, without asking."""
    agent.call(f"w-{path}", path, "edit")
    Path(path).write_text("odd\n", encoding="utf-8")
    diff = {"type": "diff", "path": path, "oldText": None, "newText": "odd\n"}
    agent.update("tool_call_update", toolCallId=f"w-{path}", status="completed", content=[diff])


def _ask(agent: OddAgent, command: str) -> None:
    """Ask for leave to run a command; what is allowed leaves a file."""
    call = f"x-{command}"
    agent.call(call, f"run {command}", "execute", {"command": command})
    if agent.may(agent.session, call, command):
        Path(command).touch()
        agent.update("tool_call_update", toolCallId=call, status="completed", rawOutput="done")
    else:
        agent.update("tool_call_update", toolCallId=call, status="failed", rawOutput="not allowed")


def _pair(agent: OddAgent, _: str) -> None:
    """Announce two calls at once, and end them together, when both were asked about."""
    for one in ("p-1", "p-2"):
        agent.call(one, f"run {one}", "execute", {"command": one})
    allowed = [agent.may(agent.session, one, one) for one in ("p-1", "p-2")]
    for one, may in zip(("p-1", "p-2"), allowed, strict=True):
        agent.update("tool_call_update", toolCallId=one, status="completed" if may else "failed", rawOutput=one)


def _plan(agent: OddAgent, state: str) -> None:
    """Have a plan of two steps, the first in this state."""
    first = {"content": "look  around", "status": state, "priority": "high"}
    agent.update("plan", entries=[first, {"content": "", "status": "pending"}, {"content": "x" * 9_000}])


def _commands(agent: OddAgent, names: str) -> None:
    """Offer these slash commands, with commas between them; `none`, and `wild` for what nobody could type or show."""
    listed: list[Json] = [
        {"name": name, "description": f"does  {name}", "input": {"hint": "[PATH]"}}
        for name in names.split(",")
        if names not in {"none", "wild"}
    ]
    if names == "wild":
        untypable = ["", "two words", "\x1b[31mred", "n" * 5_000, "/slash"]
        listed += [{"name": name, "description": "never shown"} for name in untypable]
        listed += [{"name": "long", "description": "\x1b]0;x\x07" + "d" * 1_000_000, "input": None}]
        listed += [{"name": f"many-{number}"} for number in range(10_000)]
    agent.update("available_commands_update", availableCommands=listed)


def _chosen(agent: OddAgent, _: str) -> None:
    """Say what is chosen."""
    agent.chunk(f"{agent.choices.mode} {agent.choices.model}")


def _switch(agent: OddAgent, mode: str) -> None:
    """Leave the mode for another one, and say so."""
    agent.choices.mode = mode
    agent.update("current_mode_update", currentModeId=mode)
    if agent.choices.fields().get("configOptions"):
        agent.update("config_option_update", configOptions=agent.choices.options())


def _stranger(agent: OddAgent, _: str) -> None:
    """Report about a session of somebody else, and ask in its name."""
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "STRANGE"}}
    commands = {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "strange"}]}
    for one in (update, commands):
        agent.send({"method": "session/update", "params": {"sessionId": "of-others", "update": one}})
    agent.chunk("asked" if agent.may("of-others", "x-1", "strange") else "refused")


def _offered(agent: OddAgent, _: str) -> None:
    """Ask for a file, which was not offered."""
    answer = agent.request("fs/read_text_file", {"sessionId": agent.session, "path": "/etc/passwd"})
    agent.chunk("unoffered" if "error" in answer else "READ")


def _cost(agent: OddAgent, amount: str) -> None:
    """Say what the session has cost so far."""
    agent.update("usage_update", used=10, size=1000, cost={"amount": float(amount), "currency": "USD"})


def _odd(agent: OddAgent, _: str) -> None:
    """Send updates that no version of the protocol has, and lines that are no messages."""
    agent.write("this is no JSON")
    agent.write('{"jsonrpc": "1.0"}')
    agent.update("tomorrow", anything=[1, {"deep": None}])
    agent.update("tool_call", title="without an id")
    agent.update("available_commands_update", availableCommands=[{"description": "without a name"}])
    agent.update("agent_message_chunk", content={"type": "hologram"})
    agent.send({"id": 4711, "result": {}})


def _flood(agent: OddAgent, _: str) -> None:
    """Open a call that does not end, and talk without end meanwhile."""
    agent.call("f-1", "flood", "other")
    for _number in range(FLOOD):
        agent.chunk("x" * 1_000)


def _wait(agent: OddAgent, path: str) -> None:
    """Wait until it is cancelled, or the file is there."""
    while not agent.cancelled.is_set() and not Path(path).exists():
        time.sleep(0.01)


def _busy(agent: OddAgent, path: str) -> None:
    """The same, in a call."""
    agent.call("b-1", "busy", "execute", {"command": "busy"})
    _wait(agent, path)


def _hang(_: OddAgent, _detail: str) -> None:
    """Do nothing for ever, whatever it is told."""
    time.sleep(FOREVER_S)


def _die(_: OddAgent, _detail: str) -> None:
    """Crash."""
    print("fatal: out of ideas", file=sys.stderr, flush=True)  # noqa: T201
    os._exit(7)


ACTS: dict[str, Callable[[OddAgent, str], None]] = {
    "ask": _ask,
    "busy": _busy,
    "chosen": _chosen,
    "commands": _commands,
    "cost": _cost,
    "die": _die,
    "flood": _flood,
    "hang": _hang,
    "odd": _odd,
    "offered": _offered,
    "pair": _pair,
    "plan": _plan,
    "recall": _recall,
    "stranger": _stranger,
    "switch": _switch,
    "think": _think,
    "twice": _say,
    "wait": _wait,
    "write": _write,
}
"""What a word of a prompt has it do, with what follows its colon; any other word is said."""

if __name__ == "__main__":
    OddAgent().serve()
