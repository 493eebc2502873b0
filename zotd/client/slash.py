"""Runs slash commands, from a chat and from a command line."""

from zotd.client.blocking import Connection, Json
from zotd.client.fields import amount, child, maybe_text, text
from zotd.client.humanize import money
from zotd.client.runs import Run

COMMAND_S = 60.0
"""Timeout of a slash command in seconds: an extension has 30 s for it, and may have to start first."""


ANSWER_S = 150.0
"""Timeout of a question beside the conversation in seconds; the daemon waits for the model for 120 s."""


AGENT_S = 120.0
"""Timeout of what is asked of another agent in seconds: it may have to start first, and to take its session up again."""


def invoke(connection: Connection, session: str, name: str, args: str) -> tuple[Json, Run | None]:
    """Run `/name args`; return the response (`CommandResult`) and the run that it starts, if any.

    To follow the run, attach to the session before.
    """
    answer = connection.call("run_command", session=session, name=name, args=args, timeout_s=COMMAND_S)
    return answer, run_of(answer)


def by_the_way(connection: Connection, session: str, question: str) -> str:
    """Return the answer to a question beside the conversation, with what it has cost. Raises ClientError."""
    if not question:
        return "/btw needs a question"
    found = connection.call("session.side_question", session=session, question=question, timeout_s=ANSWER_S)
    cost = money(amount(child(found, "tokens"), "cost_usd"))
    return f"{text(found, 'text')}\n(beside the conversation; {text(found, 'model')}, {cost})"


def run_of(answer: Json) -> Run | None:
    """Return the run that the response to `run_command` or `prompt` is about; None: there is none."""
    entered, run = maybe_text(answer, "input"), maybe_text(answer, "run")
    if entered is None and run is None:
        return None
    return Run(entered, run, starts_now=entered is None)
